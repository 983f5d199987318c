package apply

import (
	"net/http"

	"k8s.io/apimachinery/pkg/types"
)

// metadataOnly asks the API server for the metadata of an object alone.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// AnswerWithMetadata wraps the transport of a client so that an apply is answered with the
// metadata of the object. A Writer reads nothing of the answer: the cache gets the object
// anyway, and to encode and decode it once more would cost both sides for nothing.
func AnswerWithMetadata(next http.RoundTripper) http.RoundTripper {
	return answerWithMetadata{next: next}
}

type answerWithMetadata struct{ next http.RoundTripper }

func (a answerWithMetadata) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPatch && request.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType) {
		request = request.Clone(request.Context())
		request.Header.Set("Accept", metadataOnly)
	}
	return a.next.RoundTrip(request) //nolint:wrapcheck // a transport changes no errors
}

// WrappedRoundTripper implements net.RoundTripperWrapper of apimachinery, by which client-go finds the transport within.
func (a answerWithMetadata) WrappedRoundTripper() http.RoundTripper { return a.next }
