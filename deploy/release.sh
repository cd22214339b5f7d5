#!/usr/bin/env bash
# Builds what is released of a version into dist/: for each platform an archive with the program and its documentation, and
# a list of what the program is made of (SBOM, CycloneDX); and the checksums of all. The same commit gives the same bytes,
# and the program is the one that the Dockerfile makes of it.
set -euo pipefail
cd "$(dirname "$0")/.."
sbom=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

version=${1:-}
if [[ ! $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
	echo "Which version? For example: make release VERSION=v1.2.3" >&2
	exit 2
fi
if [ -n "$(git status --porcelain)" ]; then
	echo "A release is made of a commit: commit what is changed, or put it away (git stash)." >&2
	exit 1
fi
revision=$(git rev-parse HEAD)
time=$(git log -1 --format=%ct)

# Nothing of this machine's Go counts, not even its version.
GOTOOLCHAIN=go$(sed -n 's/^ARG BUILDER=golang:\([0-9.]*\).*/\1/p' Dockerfile)
export GOTOOLCHAIN GOENV=off GOFLAGS='' GOEXPERIMENT='' GOAMD64='' GOARM64=''

rm -rf dist
mkdir dist
for arch in amd64 arm64; do
	name=relay-$version-linux-$arch
	mkdir "dist/$name"
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false \
		-ldflags="-s -w -X main.release=$version -X main.revision=$revision" -o "dist/$name/relay" ./cmd/relay
	cp -r LICENSE README.md CHANGELOG.md docs "dist/$name"
	go run "$sbom" bin -json -noserial -notimestamp -std -version "$version" -output "dist/$name.cdx.json" "dist/$name/relay"
	tar -C dist -c --sort=name --format=ustar --mtime="@$time" --owner=0 --group=0 --numeric-owner --mode=u+w,go=rX "$name" |
		gzip -9n >"dist/$name.tar.gz"
	rm -r "dist/$name"
done
cd dist
sha256sum -- *.json *.gz >SHA256SUMS
cat SHA256SUMS
