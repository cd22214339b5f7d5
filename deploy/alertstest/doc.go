// Package alertstest holds the tests that have promtool judge the alerts, and a running Prometheus watch a running relay with
// them and with the dashboard's queries. They need both programs (Debian: apt-get install prometheus). It has no code of its own.
package alertstest
