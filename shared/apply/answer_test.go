package apply

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

type seenAccept struct{ accept *string }

func (s seenAccept) RoundTrip(request *http.Request) (*http.Response, error) {
	*s.accept = request.Header.Get("Accept")
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestOnlyAnAppliesAnswerIsMetadata(t *testing.T) {
	for name, c := range map[string]struct {
		method, content string
		want            string
	}{
		"apply":       {http.MethodPatch, string(types.ApplyYAMLPatchType), metadataOnly},
		"merge patch": {http.MethodPatch, string(types.MergePatchType), "application/json"},
		"create":      {http.MethodPost, "application/json", "application/json"},
		"get":         {http.MethodGet, "", "application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			request, err := http.NewRequestWithContext(t.Context(), c.method, "http://api/apis", strings.NewReader("{}"))
			require.NoError(t, err)
			request.Header.Set("Content-Type", c.content)
			request.Header.Set("Accept", "application/json")
			response, err := AnswerWithMetadata(seenAccept{&got}).RoundTrip(request)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, c.want, got)
			assert.Equal(t, "application/json", request.Header.Get("Accept"), "the request of the caller")
		})
	}
}
