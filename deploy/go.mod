module github.com/tidb-groups/tidb-groups/deploy

go 1.26.0

require (
	github.com/tidb-groups/tidb-groups/apis v0.0.0
	github.com/tidb-groups/tidb-groups/operators v0.0.0
	github.com/tidb-groups/tidb-groups/shared v0.0.0
)

replace github.com/tidb-groups/tidb-groups/apis => ../apis

replace github.com/tidb-groups/tidb-groups/shared => ../shared

replace github.com/tidb-groups/tidb-groups/operators => ../operators
