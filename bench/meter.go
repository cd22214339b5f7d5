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

// look reads all meters. clients are the processes that move the rows; none if we do.
func (s *stage) look(ctx context.Context, clients ...int) (u usage, err error) {
	if u.client, err = clientTime(clients); err != nil {
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

func clientTime(clients []int) (sum time.Duration, err error) {
	if len(clients) == 0 {
		own, err := readStat(os.Getpid())
		return own.own, err
	}
	for _, client := range clients {
		own, err := cpuTime(client)
		if err != nil {
			return 0, err
		}
		sum += own
	}
	return sum, nil
}

// Parts of what it has cost: microseconds of processor time, and bytes.
func ofClient(u usage) float64   { return microseconds(u.client) }
func ofPostgres(u usage) float64 { return microseconds(u.postgres) }
func ofKafka(u usage) float64    { return microseconds(u.kafka) }
func ofWAL(u usage) float64      { return u.wal }

// since is the difference to an earlier look.
func (u usage) since(earlier usage) usage {
	return usage{
		client: u.client - earlier.client, postgres: u.postgres - earlier.postgres,
		kafka: u.kafka - earlier.kafka, wal: u.wal - earlier.wal,
	}
}
