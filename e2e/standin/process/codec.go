package process

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// Codec carries the messages of kvproto over gRPC. They are gogo messages with
// their own Marshal and Unmarshal, which grpc's own codec no longer calls: it
// would go through reflection instead, and fails on fields that are not
// pointers.
func Codec() encoding.CodecV2 { return codec{} }

type codec struct{}

// Name is that of grpc's codec, since the bytes are the same.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("marshal %T: not a kvproto message", v)
	}
	b, err := m.Marshal()
	if err != nil {
		return nil, fmt.Errorf("marshal %T: %w", v, err)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(interface {
		Reset()
		Unmarshal(b []byte) error
	})
	if !ok {
		return fmt.Errorf("unmarshal %T: not a kvproto message", v)
	}
	m.Reset()
	if err := m.Unmarshal(data.Materialize()); err != nil {
		return fmt.Errorf("unmarshal %T: %w", v, err)
	}
	return nil
}
