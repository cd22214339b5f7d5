# The image of the relay: its program and the certificate authorities, nothing else. Needs BuildKit, which Docker uses
# by itself since version 23; before, set DOCKER_BUILDKIT=1. For several platforms at once:
#
#     docker buildx build --platform linux/amd64,linux/arm64 .
#
# Target "writer" is a program that writes sample transitions, for compose.yaml.

# The version of Go that releases are built with as well. Give a digest to trust nobody's tag: golang@sha256:...
ARG BUILDER=golang:1.26.8-bookworm

# Builds for other platforms on the machine's own, since Go needs no emulation.
FROM --platform=$BUILDPLATFORM $BUILDER AS source
WORKDIR /src
COPY . .
ARG TARGETOS TARGETARCH
ENV CGO_ENABLED=0 GOTOOLCHAIN=local GOOS=$TARGETOS GOARCH=$TARGETARCH

FROM source AS writer-files
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -trimpath -buildvcs=false -o /image/writer ./cmd/writer

FROM scratch AS writer
COPY --from=writer-files /image/ /
USER 65532:65532
ENTRYPOINT ["/writer"]

# The same command as in the Makefile, so that it is the same program. All files get one time, so that a second build
# makes the same layer.
FROM source AS relay-files
ARG VERSION=devel REVISION=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -trimpath -buildvcs=false -ldflags="-s -w -X main.release=$VERSION -X main.revision=$REVISION" \
      -o /image/relay ./cmd/relay && \
    mkdir -p /image/etc/ssl/certs && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ && \
    find /image -exec touch -d @0 {} +

FROM scratch AS relay
ARG VERSION=devel REVISION=unknown
LABEL org.opencontainers.image.title="relay" \
      org.opencontainers.image.description="Delivers the events of an Aksara outbox in PostgreSQL to Kafka" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=relay-files /image/ /
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=6s --start-period=10s CMD ["/relay", "healthy"]
ENTRYPOINT ["/relay"]
