package main

import (
	"context"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

// usage is what moving rows has cost so far, or between two looks.
type usage struct {
	at       time.Time
	client   time.Duration // processor time of whoever moves the rows
	postgres time.Duration // of the whole server
	kafka    time.Duration // of the broker
	wal      float64       // bytes
}

// look reads all meters. client is the process that moves the rows, or 0 if we do.
func (s *stage) look(ctx context.Context, client int) (u usage, err error) {
	if u.client, err = clientTime(client); err != nil {
		return u, err
	}
	if u.postgres, err = cpuTime(s.postgresPID); err != nil {
		return u, err
	}
	if u.kafka, err = cpuTime(s.kafkaPID); err != nil {
		return u, err
	}
	err = s.connected(ctx, "postgres", func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8`).Scan(&u.wal)
	})
	u.at = time.Now()
	return u, err
}

func clientTime(client int) (time.Duration, error) {
	if client != 0 {
		return cpuTime(client)
	}
	own, err := readStat(os.Getpid())
	return own.own, err
}

// since is the difference to an earlier look.
func (u usage) since(earlier usage) usage {
	return usage{
		client: u.client - earlier.client, postgres: u.postgres - earlier.postgres,
		kafka: u.kafka - earlier.kafka, wal: u.wal - earlier.wal,
	}
}
