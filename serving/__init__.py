"""A gunicorn server for TLS under deadlines, around any ASGI application: it knows nothing of what it serves."""
