#!/bin/sh
# A stand-in for Dumpling: it takes the flags that the program gives it, refuses others, and
# writes one file and the metadata that Dumpling writes last. Of a database called endless it
# writes no end, and of one called broken it fails.
while [ $# -gt 0 ]; do
	case $1 in
	--output) to=$2 ;;
	--database) database=$2 ;;
	--host | --port | --user | --filetype | --filesize | --consistency | --filter | --tables-list | --params) ;;
	--no-views=* | --no-sequences=* | --status-addr=*) shift; continue ;;
	*) echo "parsing arguments failed: unknown flag: $1" >&2; exit 1 ;;
	esac
	shift 2
done
mkdir -p "$to" || exit 1
echo 'INSERT INTO `t` VALUES (1);' >"$to/shop.t.000000000.sql"
case $database in
endless) echo '[2026/01/01 02:00:00.000 +00:00] [INFO] [status.go:37] [progress] [tables="0/1 (0.0%)"] ["chunks progress"=" 25.00 %"]'; exec tail -f /dev/null ;;
broken) echo "dump failed: sql: SELECT 1: Error 1105 (HY000): the database is broken" >&2; exit 1 ;;
esac
printf 'Started dump at: 2026-01-01 02:00:00\nSHOW MASTER STATUS:\n\tLog: tidb-binlog\n\tPos: 462000000000000001\n\tGTID:\n\n' >"$to/metadata"
