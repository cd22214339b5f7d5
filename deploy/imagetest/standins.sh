#!/usr/bin/env bash
# Makes images under the names of official ones, from the same software on this machine: Go, Kafka and PostgreSQL. They are
# for tests where no registry is. Only what the Dockerfile and compose.yaml use is in them.
#
# standins.sh FOLDER GOPROXY GOCACHE JAVA KAFKA-LIBS
set -euo pipefail
work=$1 proxy=$2 cache=$3 java=$(readlink -f "$4") libs=$5
repository=$(dirname "$0")/../..
go_image=$(sed -n 's/^ARG BUILDER=//p' "$repository/Dockerfile")

# begin NAME: a new root folder with a shell and what scripts need.
begin() {
	tree=$work/$1
	mkdir -p "$tree"/{tmp,etc,proc}
	chmod 1777 "$tree/tmp"
	programs /bin/sh cat cp env find mkdir sed touch tr
}

# programs FILE...: copies programs, or libraries, with the libraries that they need.
programs() {
	local file paths=()
	for file; do
		file=$(type -P "$file")
		paths+=("$file")
	done
	copy "${paths[@]}" $(needed "${paths[@]}")
}

# needed FILE...: the libraries that they are linked with.
needed() { { ldd "$@" 2>/dev/null || true; } | awk '/\(0x/ && $(NF - 1) ~ /^\// { print $(NF - 1) }' | sort -u; }

copy() { cp -rL --parents "$@" "$tree"; }

# finish IMAGE CHANGE...
finish() {
	local image=$1 change changes=()
	shift
	for change; do changes+=(-c "$change"); done
	tar -C "$tree" -c . | docker import "${changes[@]}" - "$image" >/dev/null
	rm -rf "$tree"
}

script() { # FILE, its text on standard input
	mkdir -p "$tree/$(dirname "$1")"
	cat >"$tree/$1"
	chmod 755 "$tree/$1"
}

begin go
copy /etc/ssl/certs/ca-certificates.crt
goroot=$(go env GOROOT)
mkdir -p "$tree/usr/local/go"
tar -C "$goroot" -c --exclude='*_test.go' --exclude=testdata bin src pkg go.env VERSION | tar -C "$tree/usr/local/go" -x
cp -r "$cache" "$tree/cache"
finish "$go_image" 'ENV GOCACHE=/cache' 'ENV PATH=/usr/local/go/bin:/usr/bin:/bin' "ENV GOPROXY=$proxy" 'ENV GOPATH=/go'

begin kafka
java_home=${java%/bin/java}
copy $(find -L "$java_home" -type f) $(needed "$java" $(find "$java_home/lib" -name '*.so') | grep -v "^$java_home/")
mkdir -p "$tree/opt/kafka"
cp -r "$libs" "$tree/opt/kafka/libs"
# KAFKA_A_B=x is the property a.b=x.
script run <<-EOF
	#!/bin/sh
	set -e
	env | sed -n 's/^KAFKA_\([A-Z_]*\)=.*/\1/p' | while read -r name; do
	  echo "\$(echo "\$name" | tr A-Z_ a-z.)=\$(eval echo "\"\\\$KAFKA_\$name\"")"
	done >/tmp/server.properties
	echo log.dirs=/tmp/data >>/tmp/server.properties
	/java kafka.tools.StorageTool format --ignore-formatted -t AAAAAAAAAAAAAAAAAAAAAA -c /tmp/server.properties
	exec /java kafka.Kafka /tmp/server.properties
EOF
script java <<-EOF
	#!/bin/sh
	exec $java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '/opt/kafka/libs/*' "\$@"
EOF
script opt/kafka/bin/kafka-topics.sh <<-EOF
	#!/bin/sh
	exec /java org.apache.kafka.tools.TopicCommand "\$@"
EOF
finish "$(sed -n 's/^ *image: \(apache.kafka:.*\)/\1/p' "$repository/compose.yaml" | head -1)" \
	'ENV PATH=/usr/bin:/bin' 'USER 1000' 'CMD ["/run"]'

begin postgres
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
version=$(basename "$(dirname "$bin")")
programs "$bin"/{initdb,postgres,pg_isready}
copy "$(dirname "$bin")/lib" "/usr/share/postgresql/$version" /usr/share/zoneinfo/Etc
echo 'postgres:x:70:70::/:/bin/sh' >"$tree/etc/passwd"
script run <<-EOF
	#!/bin/sh
	set -e
	PATH=$bin:\$PATH
	single() { postgres --single -j -D /tmp/data "\$1" >/dev/null; }
	echo "\$POSTGRES_PASSWORD" >/tmp/password
	initdb -D /tmp/data -U "\$POSTGRES_USER" --pwfile /tmp/password -E UTF8 --no-locale --no-sync
	echo 'host all all all scram-sha-256' >>/tmp/data/pg_hba.conf
	echo "create database \"\$POSTGRES_DB\"" | single postgres
	for file in /docker-entrypoint-initdb.d/*.sql; do single "\$POSTGRES_DB" <"\$file"; done
	exec postgres -D /tmp/data -c 'listen_addresses=*' -c unix_socket_directories=/tmp
EOF
finish "$(sed -n 's/^ *image: \(postgres:.*\)/\1/p' "$repository/compose.yaml")" \
	"ENV PATH=$bin:/usr/bin:/bin" 'USER 70' 'CMD ["/run"]'
