"""The rights of the writer of certificates: by name, and nothing to list, watch, create or delete."""

from reconciler.certificate_rights import configuration_rights, named_rules, secret_rights


def test_secrets() -> None:
    """Two Secrets, to get and to patch."""
    assert named_rules(secret_rights()) == [
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": ["lockstep-ca", "lockstep-tls"],
            "verbs": ["get", "patch"],
        }
    ]


def test_configurations() -> None:
    """One configuration of each kind, to get and to patch."""
    assert named_rules(configuration_rights()) == [
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["mutatingwebhookconfigurations"],
            "resourceNames": ["lockstep-mutating"],
            "verbs": ["get", "patch"],
        },
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["validatingwebhookconfigurations"],
            "resourceNames": ["lockstep-policies"],
            "verbs": ["get", "patch"],
        },
    ]


def test_other_names() -> None:
    """Names that an installation chose are the only ones."""
    rules = named_rules([*secret_rights("a", "b"), *configuration_rights("c", "d")])
    assert [rule["resourceNames"] for rule in rules] == [["b", "a"], ["c"], ["d"]]
