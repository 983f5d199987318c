package apirequest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/apirequest"
)

func TestVerbAndResourceOfARequestAreFound(t *testing.T) {
	for asked, want := range map[string]apirequest.Request{
		"GET /version":                                           {},
		"GET /apis/groups.tidb.dev":                              {},
		"GET /api/v1/nodes":                                      {Verb: "list", Resource: "nodes"},
		"GET /api/v1/nodes/n1":                                   {Verb: "get", Resource: "nodes", Name: "n1"},
		"GET /api/v1/namespaces/a":                               {Verb: "get", Resource: "namespaces", Name: "a"},
		"GET /api/v1/pods?watch=true":                            {Verb: "watch", Resource: "pods"},
		"GET /api/v1/pods?watch=false":                           {Verb: "list", Resource: "pods"},
		"POST /api/v1/namespaces/a/pods":                         {Verb: "create", Resource: "pods", Namespace: "a"},
		"PUT /apis/coordination.k8s.io/v1/namespaces/a/leases/l": {Verb: "update", Resource: "leases", Namespace: "a", Name: "l"},
		"PATCH /apis/groups.tidb.dev/v1alpha1/namespaces/a/instances/b-pd-0/status": {Verb: "patch", Resource: "instances", Subresource: "status", Namespace: "a", Name: "b-pd-0"},
		"DELETE /api/v1/namespaces/a/pods/p":                                        {Verb: "delete", Resource: "pods", Namespace: "a", Name: "p"},
	} {
		t.Run(asked, func(t *testing.T) {
			method, url, _ := strings.Cut(asked, " ")
			req, err := http.NewRequestWithContext(t.Context(), method, "https://127.0.0.1:6443"+url, http.NoBody)
			require.NoError(t, err)
			got := apirequest.Parse(req)
			assert.Equal(t, want, got)
			assert.Equal(t, method != http.MethodGet, got.Writes())
		})
	}
}
