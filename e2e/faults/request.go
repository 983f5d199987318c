package faults

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/e2e/apirequest"
)

// isFaultPoint says whether a write may be a point. Dry runs write nothing, and Events
// of the API nothing that anybody reads.
func isFaultPoint(req *http.Request, asks apirequest.Request) bool {
	return asks.Writes() && asks.Resource != "events" && !req.URL.Query().Has("dryRun")
}

// WriteOf names a write of an operator, all but which of its kin it is.
func WriteOf(operator string, req *http.Request, asks apirequest.Request) (Write, error) {
	w := Write{Operator: operator, Verb: asks.Verb, Resource: asks.Resource, Name: asks.Name}
	if asks.Subresource != "" {
		w.Resource += "." + asks.Subresource
	}
	if w.Verb == apirequest.Create && w.Name == "" {
		var err error
		if w.Name, err = bodyName(req); err != nil {
			return w, err
		}
	}
	w.Name = normalizeName(asks.Resource, w.Name)
	return w, nil
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
