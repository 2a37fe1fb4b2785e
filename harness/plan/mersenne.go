package plan

// mersenne is the MT19937 generator of Matsumoto and Nishimura ("Mersenne Twister", ACM TOMACS 8(1), 1998), seeded and
// read as Python's random.Random does, so that a seed names the same draws here as in the tool whose documents are to be
// compared with ours.
type mersenne struct {
	state [mersenneSize]uint32
	next  int // the word of the state to be handed out next
}

const (
	mersenneSize  = 624
	mersenneShift = 397
)

// newMersenne seeds by an array of 32-bit words, lowest first: the authors' init_by_array of 2002.
func newMersenne(key []uint32) *mersenne {
	m := &mersenne{next: mersenneSize}
	s := &m.state
	s[0] = 19650218
	for i := 1; i < mersenneSize; i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + uint32(i)
	}
	i := 1
	advance := func() {
		if i++; i == mersenneSize {
			s[0], i = s[mersenneSize-1], 1
		}
	}
	for k := range max(mersenneSize, len(key)) {
		j := k % len(key)
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*1664525) + key[j] + uint32(j)
		advance()
	}
	for range mersenneSize - 1 {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*1566083941) - uint32(i)
		advance()
	}
	s[0] = 1 << 31
	return m
}

// seedKey is a seed as Python hands it to the generator: the 32-bit words of its absolute value, as few as hold it and at
// least one.
func seedKey(seed int64) []uint32 {
	n := uint64(seed)
	if seed < 0 {
		n = -n // also right for the least number, which has no int64 opposite
	}
	key := []uint32{uint32(n)}
	if high := uint32(n >> 32); high != 0 {
		key = append(key, high)
	}
	return key
}

func (m *mersenne) uint32() uint32 {
	if m.next == mersenneSize {
		m.turn()
	}
	y := m.state[m.next]
	m.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// turn makes the next words of the state.
func (m *mersenne) turn() {
	s := &m.state
	for i := range mersenneSize {
		y := s[i]&(1<<31) | s[(i+1)%mersenneSize]&(1<<31-1)
		s[i] = s[(i+mersenneShift)%mersenneSize] ^ y>>1 ^ -(y&1)&0x9908b0df
	}
	m.next = 0
}

// float64 is a number from 0 up to but not 1, in steps of 2^-53.
func (m *mersenne) float64() float64 {
	high, low := m.uint32()>>5, m.uint32()>>6
	return float64(uint64(high)<<26|uint64(low)) / (1 << 53)
}
