# One image for every process of Lockstep, for linux/amd64 and linux/arm64:
#
#     docker buildx build --platform linux/amd64,linux/arm64 --provenance=true --tag REPOSITORY:VERSION .
#
# The last stage starts from nothing: it holds Python, the libraries Python needs, and the installed wheels. There is
# no shell, no package manager, no pip. `make image-check` runs the commands below, as they stand here, without a
# registry, and then the resulting tree as an unprivileged user.

# An index that has both architectures, with the compiler that one wheel needs; nothing of it but Python and some
# libraries gets into the image. Another base is taken with --build-arg BASE=...; one without a digest is refused.
ARG BASE=python:3.11-bookworm@sha256:35d3a4a3d5e42e02ab916d44513a050689f12c0533d45598d229672503fe77ca

FROM ${BASE} AS build
ARG BASE
ARG SOURCE_DATE_EPOCH=1764547200
ENV PIP_DISABLE_PIP_VERSION_CHECK=1
ENV PIP_ROOT_USER_ACTION=ignore
ENV PYTHONDONTWRITEBYTECODE=1
WORKDIR /build
RUN case "${BASE}" in *@sha256:*) ;; *) echo "BASE: must be pinned by digest, got \"${BASE}\"" >&2; exit 1 ;; esac
COPY requirements.lock requirements.lock
COPY image image
RUN python3 -m venv --without-pip builder
RUN python3 -m pip --python builder/bin/python install -q --require-hashes --only-binary=:all: -r image/build.lock
RUN python3 -m pip --python builder/bin/python wheel -q --require-hashes --only-binary=:all: --no-binary=gunicorn-h1c \
    --no-build-isolation --wheel-dir wheels -r requirements.lock
COPY pyproject.toml pyproject.toml
COPY README.md README.md
COPY LICENSE LICENSE
COPY certs certs
COPY gangs gangs
COPY lockstep lockstep
COPY manifests manifests
COPY policies policies
COPY reconciler reconciler
COPY schedulers schedulers
COPY serving serving
COPY webhook webhook
RUN python3 -m pip --python builder/bin/python wheel -q --no-deps --no-build-isolation --wheel-dir wheels .
RUN python3 -m venv --without-pip /opt/lockstep
RUN python3 -m pip --python /opt/lockstep/bin/python install -q --no-index --no-deps --no-compile wheels/*.whl
RUN python3 -m image.assemble --install /opt/lockstep --wheels wheels --base "${BASE}" /image

FROM scratch
COPY --from=build /image /
ENV PYTHONDONTWRITEBYTECODE=1
ENV PYTHONUNBUFFERED=1
ENV PATH=/opt/lockstep/bin
USER 65532:65532
WORKDIR /
EXPOSE 8443
ENTRYPOINT ["/opt/lockstep/bin/lockstep"]
