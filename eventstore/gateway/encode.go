package gateway

import (
	"encoding/binary"
	"strconv"

	"github.com/google/uuid"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"bahi/domain/event"
)

// encoder writes events in the bytes of streams.ReadResp (streams.proto of EventStore-Client-Go v4.2.0). A client that catches
// up is sent little else, and by way of the generated messages that took more time than everything else on this side together.
// A call has one of its own. Numbers of fields are told beside what they hold.
type encoder struct {
	textIDs bool // as text, not as two numbers

	chunk       mem.Buffer // what is sent are parts of it; it goes back to its pool when all have been
	used        int        // bytes of it
	head, field []byte     // of the last event, kept for their memory
}

// chunkBytes is how much memory is taken for events at once.
const chunkBytes = 32 << 10

// event is an event as clients get it.
func (c *encoder) event(e event.Stored) mem.Buffer {
	c.writeHead(e)
	position := uint64(e.Position)
	recorded := len(c.head) + sizeBytes(7, e.Meta) + sizeBytes(8, e.Data)
	read := protowire.SizeTag(1) + protowire.SizeBytes(recorded) + protowire.SizeTag(3) + protowire.SizeVarint(position)

	b := c.room(protowire.SizeTag(1) + protowire.SizeBytes(read))
	begin := len(b)
	b = appendLength(b, 1, read)     // ReadResp.event
	b = appendLength(b, 1, recorded) // ReadEvent.event
	b = append(b, c.head...)
	b = appendBytes(b, 7, e.Meta) // custom_metadata
	b = appendBytes(b, 8, e.Data) // data
	b = protowire.AppendTag(b, 3, protowire.VarintType)
	b = protowire.AppendVarint(b, position) // ReadEvent.commit_position, also where it is zero
	c.used = len(b)
	return c.chunk.Slice(begin, c.used)
}

// writeHead writes a RecordedEvent without its payload and metadata. The time is in ticks of 100 nanoseconds since 1970, as
// clients read it.
func (c *encoder) writeHead(e event.Stored) {
	var scratch [32]byte
	c.head = appendField(c.head[:0], 1, c.id(e.ID))
	c.field = appendBytes(c.field[:0], 3, e.Stream) // stream_name
	c.head = appendField(c.head, 2, c.field)        // stream_identifier
	c.head = appendNumber(c.head, 3, uint64(e.Revision))
	c.head = appendNumber(c.head, 4, uint64(e.Position)) // prepare_position
	c.head = appendNumber(c.head, 5, uint64(e.Position)) // commit_position
	appendProperty(c, propertyContentType, contentJSON)
	appendProperty(c, propertyCreated, strconv.AppendInt(scratch[:0], e.At.UnixMicro()*10, 10))
	appendProperty(c, propertyType, e.Type)
}

func (c *encoder) id(id uuid.UUID) []byte {
	if c.textIDs {
		c.field = appendField(c.field[:0], 2, id.String())
		return c.field
	}
	var scratch [32]byte
	numbers := appendNumber(scratch[:0], 1, binary.BigEndian.Uint64(id[:8]))
	numbers = appendNumber(numbers, 2, binary.BigEndian.Uint64(id[8:]))
	c.field = appendField(c.field[:0], 1, numbers)
	return c.field
}

// appendProperty adds an entry of the map metadata to the head.
func appendProperty[T string | []byte](c *encoder, name string, value T) {
	c.field = appendField(c.field[:0], 1, name)
	c.field = appendField(c.field, 2, value)
	c.head = appendField(c.head, 6, c.field)
}

// room is the chunk as far as it is used, or another one if it has no room for so many bytes more.
func (c *encoder) room(size int) []byte {
	if c.chunk == nil || c.chunk.Len()-c.used < size {
		c.free()
		pool := mem.DefaultBufferPool()
		c.chunk, c.used = mem.NewBuffer(pool.Get(max(size, chunkBytes)), pool), 0
	}
	return c.chunk.ReadOnlyData()[:c.used]
}

// free gives back what memory the encoder has, as soon as all is sent.
func (c *encoder) free() {
	if c.chunk != nil {
		c.chunk.Free()
		c.chunk = nil
	}
}

func sizeBytes(field protowire.Number, v []byte) int {
	if len(v) == 0 {
		return 0
	}
	return protowire.SizeTag(field) + protowire.SizeBytes(len(v))
}

func appendLength(b []byte, field protowire.Number, n int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(n))
}

func appendField[T string | []byte](b []byte, field protowire.Number, v T) []byte {
	return append(appendLength(b, field, len(v)), v...)
}

// appendBytes leaves out what is empty, as proto3 does.
func appendBytes[T string | []byte](b []byte, field protowire.Number, v T) []byte {
	if len(v) == 0 {
		return b
	}
	return appendField(b, field, v)
}

// appendNumber leaves out zero, as proto3 does.
func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

// codec is gRPC's own for protobuf, but lets through what is in bytes already.
type codec struct{ encoding.CodecV2 }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if message, is := v.(mem.Buffer); is {
		return mem.BufferSlice{message}, nil
	}
	return c.CodecV2.Marshal(v)
}
