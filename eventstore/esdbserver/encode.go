package esdbserver

import (
	"encoding/binary"
	"strconv"

	"github.com/google/uuid"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"bahi/domain/event"
)

// encoder writes events in the encoding of streams.ReadResp (streams.proto of EventStore-Client-Go v4.2.0). A client that catches up
// receives mostly events, and encoding the generated messages took most of the server's time. Each call has its own encoder. Comments name
// the fields of the numbers.
type encoder struct {
	textIDs bool // as text, not as two numbers

	chunk       mem.Buffer // messages are slices of it; when all are sent, it returns to its pool
	used        int        // in bytes
	head, field []byte     // parts of the last event; reused
}

// chunkBytes is the size of a chunk of memory for events.
const chunkBytes = 32 << 10

// event returns an event's message.
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
	b = protowire.AppendVarint(b, position) // ReadEvent.commit_position, even if it is zero
	c.used = len(b)
	return c.chunk.Slice(begin, c.used)
}

// writeHead writes a RecordedEvent without its payload and metadata. The time is in ticks of 100 nanoseconds since 1970, as clients expect.
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

// appendProperty appends an entry of the map metadata to the head.
func appendProperty[T string | []byte](c *encoder, name string, value T) {
	c.field = appendField(c.field[:0], 1, name)
	c.field = appendField(c.field, 2, value)
	c.head = appendField(c.head, 6, c.field)
}

// room returns a chunk with enough room: the current one, or a new one.
func (c *encoder) room(size int) []byte {
	if c.chunk == nil || c.chunk.Len()-c.used < size {
		c.free()
		pool := mem.DefaultBufferPool()
		c.chunk, c.used = mem.NewBuffer(pool.Get(max(size, chunkBytes)), pool), 0
	}
	return c.chunk.ReadOnlyData()[:c.used]
}

// free releases the encoder's memory as soon as everything was sent.
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

// appendBytes omits an empty field, as proto3 does.
func appendBytes[T string | []byte](b []byte, field protowire.Number, v T) []byte {
	if len(v) == 0 {
		return b
	}
	return appendField(b, field, v)
}

// appendNumber omits zero, as proto3 does.
func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

// codec is gRPC's codec for protobuf, which also passes messages that are already encoded.
type codec struct{ encoding.CodecV2 }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if message, is := v.(mem.Buffer); is {
		return mem.BufferSlice{message}, nil
	}
	return c.CodecV2.Marshal(v)
}
