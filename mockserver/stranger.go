package mockserver

import "crypto/rand"

// stranger is another request, as far as its words can get into the wrong reply.
type stranger struct {
	id      string
	sign    string // what it asks its reply to begin with
	opening []token
	seed    seed
}

// openingTokens is how many tokens of a stranger's answer are known.
const openingTokens = 32

// recent holds the last request and the last before it of another conversation.
type recent [2]*stranger

// meet returns the request before a job's, of another conversation, and then remembers the job's as the last. To the very
// first a stranger is made up, with the marker that would come next.
func (r *recent) meet(j *job) stranger {
	self := &stranger{id: j.id, sign: j.speech.sign, seed: j.seed, opening: opening(j.speech)}
	other := r[0]
	if other != nil && other.seed == j.seed {
		other = r[1]
	}
	*r = recent{self, other}
	if other == nil {
		sign := following(j.speech.sign)
		made := speech{sign: sign, content: answerText(j.seed.rand(forStranger))}
		return stranger{id: "chatcmpl-" + rand.Text(), sign: sign, opening: opening(made)}
	}
	met := *other
	if met.sign == "" || met.sign == j.speech.sign {
		met.sign = following(j.speech.sign)
	}
	return met
}

// opening is how an answer begins. A call is not told to others.
func opening(said speech) []token {
	said.reasoning, said.call = "", nil
	return generate(said, openingTokens, nil).tokens
}

// following is a sign with its last character counted on, "" for none.
func following(sign string) string {
	if sign == "" {
		return ""
	}
	var next byte
	switch last := sign[len(sign)-1]; last {
	case '9':
		next = '0'
	case 'Z':
		next = 'A'
	default:
		next = last + 1
	}
	return sign[:len(sign)-1] + string(rune(next))
}
