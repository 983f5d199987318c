package faults

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// request is what matters of a request to the API server.
type request struct {
	verb     string // empty unless it writes or watches
	resource string
	name     string
}

// read understands a request. Dry runs write nothing, and Events of the API
// nothing that anybody reads.
func read(req *http.Request) (request, error) {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	skip := 2 // api/v1
	if parts[0] == "apis" {
		skip = 3
	}
	if len(parts) <= skip {
		return request{}, nil
	}
	parts = parts[skip:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	out := request{resource: parts[0]}
	if len(parts) > 1 {
		out.name = parts[1]
	}
	if len(parts) > 2 {
		out.resource += "." + parts[2]
	}
	query := req.URL.Query()
	switch {
	case query.Has("dryRun") || out.resource == "events":
	case req.Method == http.MethodPost:
		out.verb = "create"
	case req.Method == http.MethodPut:
		out.verb = "update"
	case req.Method == http.MethodPatch:
		out.verb = "patch"
	case req.Method == http.MethodDelete:
		out.verb = "delete"
	case query.Get("watch") != "" && query.Get("watch") != "false":
		out.verb = "watch"
	}
	if out.verb == "create" && out.name == "" {
		var err error
		if out.name, err = bodyName(req); err != nil {
			return out, err
		}
	}
	return out, nil
}

// bodyName returns the name of the object in a request's body, which it leaves
// to be read again.
func bodyName(req *http.Request) (string, error) {
	if req.Body == nil {
		return "", nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return "", fmt.Errorf("read body of %s %s: %w", req.Method, req.URL.Path, err)
	}
	if err := req.Body.Close(); err != nil {
		return "", fmt.Errorf("close body of %s %s: %w", req.Method, req.URL.Path, err)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	// Kinds of Kubernetes come as protobuf, ours as JSON.
	if object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
		if m, err := meta.Accessor(object); err == nil {
			return m.GetName(), nil
		}
	}
	var object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(body, &object); err != nil {
		return "", fmt.Errorf("read name in body of %s %s: %w", req.Method, req.URL.Path, err)
	}
	return object.Metadata.Name, nil
}
