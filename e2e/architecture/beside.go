package architecture

// besideLayers are the packages of shared that are no part of the planner, each below those
// that use it. What each is for stands in its doc.go.
func besideLayers() []layer {
	return []layer{
		{name: "accessreview"},
		{name: "canonical", pure: true},
		{name: "cause"},
		{name: "expiring", pure: true},
		{name: "apply", uses: []string{"canonical", "cause", "expiring"}},
		{name: "httpclient"},
		{name: "hook", uses: []string{"httpclient"}},
		{name: "index"},
		{name: "lease", pure: true},
		{name: "leaseclient", uses: []string{"lease"}},
		{name: "names"},
		{name: "origin", uses: []string{"names"}, pure: true},
		{name: "question"},
		{name: "relist"},
		{name: "schema"},
		{name: "shard"},
		{name: "statusports", uses: []string{"httpclient", "question"}},
		{name: "step"},
		{name: "certificate", uses: []string{"names", "origin", "step"}},
		{name: "conditions", uses: []string{"step"}, pure: true},
		{name: "credentials", uses: []string{"certificate", "names"}},
		{name: "gate", uses: []string{"conditions"}, pure: true},
		{name: "timetable", pure: true},
		{name: "tomlconfig", pure: true},
		{name: "revision", uses: []string{"canonical", "expiring", "names", "tomlconfig"}, pure: true},
		{name: "topology", pure: true},
		{name: "labelling", uses: []string{"step"}},
		{name: "turns"},
		{name: "pd", uses: []string{"cause"}},
		{name: "pd/polling", uses: []string{"pd", "turns"}},
		{name: "pdclient/pdanswer", uses: []string{"pd"}, pure: true},
		{name: "pdclient", uses: []string{"httpclient", "pd", "pdclient/pdanswer"}},
		{name: "verdict", pure: true},
		{name: "settings", uses: []string{"cause", "httpclient", "origin", "question", "step", "tomlconfig", "verdict"}},
		{name: "stateless", uses: []string{"conditions", "gate", "lease", "names", "verdict"}, pure: true},
		{name: "watch", uses: []string{"index", "lease"}},
		{name: "queueing", uses: []string{"step", "watch"}},
		{name: "workload", uses: []string{"names", "revision"}, pure: true},
		{name: "metrics", uses: []string{"conditions", "leaseclient", "pd", "workload"}},
		{name: "status", uses: []string{"apply", "conditions", "workload"}},
		{name: "operator", uses: []string{"accessreview", "apply", "credentials", "gate", "httpclient", "index", "metrics", "pd", "pd/polling", "pdclient", "relist", "revision", "schema", "shard", "status", "step"}},
	}
}

// besideOperatorLayers are the packages of operators that decide something small, or use
// others. One that uses none of the module, such as what speaks to a status port, need not be
// listed.
func besideOperatorLayers() []layer {
	return []layer{
		{name: "all/suite"},
		{name: "backup/schedule", pure: true},
		{name: "tidbcluster/bootstrap", pure: true},
		{name: "tidbgroup/initialsql", pure: true},
		{name: "tidbgroup/sqljob", uses: []string{"tidbgroup/initialsql"}, pure: true},
		{name: "tidbgroup/upgrade", pure: true},
	}
}
