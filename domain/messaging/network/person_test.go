package network_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bahi/domain/messaging/network"
)

func TestAnIDOfTheNetworkIsAPhoneWhereOneCanBeRead(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"919812345678": "919812345678", "5215512345678": "525512345678", "525512345678": "525512345678", "5491123456789": "5491123456789",
		"541123456789":  "541123456789",
		"5511987654321": "5511987654321", "551187654321": "551187654321", "14155550123": "14155550123",
		"99999999999999999999": "", "7": "", "0000": "", "IN.7": "", "": "", "52155123456789012": "",
	} {
		require.Equal(t, want, network.Phone(id), id)
	}
}

func TestSpellingsOfOneNumberAreOne(t *testing.T) {
	t.Parallel()
	for long, short := range map[string]string{
		"5215512345678": "525512345678", "5491123456789": "541123456789", "5511987654321": "551187654321", "5521912345678": "5521912345678",
		"919812345678": "919812345678", "5": "5",
	} {
		one, _ := network.Spelling(long)
		other, _ := network.Spelling(short)
		require.Equal(t, one, other, long)
		require.Equal(t, short, one)
	}
}

func TestWhatWasDoneInOneSecondIsInTheOrderOfItsArrival(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	first, second := network.Moment{At: at, ArrivedAt: at.Add(2 * time.Second)}, network.Moment{At: at, ArrivedAt: at.Add(3 * time.Second)}
	later := network.Moment{At: at.Add(time.Second), ArrivedAt: at.Add(time.Second)}
	require.Equal(t, []bool{true, false, true, false, false},
		[]bool{first.Before(second), second.Before(first), second.Before(later), later.Before(first), first.Before(first)})
}
