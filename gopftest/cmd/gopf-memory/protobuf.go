package main

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"gopf.dev/gopf/gopftest/internal/stable"
)

// maxBody is the limit of the real API server for requests in Protobuf.
const maxBody = 3 << 20

// fromProtobuf converts request bodies from Protobuf, which kubectl sends for well-known
// kinds, to JSON. Responses are in JSON, which all clients accept.
func fromProtobuf(next http.Handler) http.Handler {
	media := serializer.NewCodecFactory(stable.Scheme()).SupportedMediaTypes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Content-Type"), runtime.ContentTypeProtobuf) {
			next.ServeHTTP(w, r)
			return
		}
		text, err := asJSON(media, http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, "decode the body: "+err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		r.ContentLength = int64(len(text))
		r.Header.Set("Content-Length", strconv.Itoa(len(text)))
		r.Header.Set("Content-Type", "application/json")
		next.ServeHTTP(w, r)
	})
}

func asJSON(media []runtime.SerializerInfo, body io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	protobuf, _ := runtime.SerializerInfoForMediaType(media, runtime.ContentTypeProtobuf)
	json, _ := runtime.SerializerInfoForMediaType(media, runtime.ContentTypeJSON)
	object, kind, err := protobuf.Serializer.Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	var text bytes.Buffer
	err = json.Serializer.Encode(object, &text)
	return text.Bytes(), err
}
