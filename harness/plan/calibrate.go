package plan

import (
	"fmt"

	"plumbline/fixtures"
)

// Assumed is what is taken where nothing was measured: three characters for a token, as the tool that the
// protocol comes from does.
var Assumed = fixtures.Calibration{CharsPerToken: 3, Source: "assumed"}

// The bounds of a believable calibration, in characters per token. English prose has some 4; a tokenizer of bytes or a
// count of something else than the prompt lies outside.
const (
	minCharsPerToken = 0.5
	maxCharsPerToken = 20
)

// CalibrationPoint is the length of a user message in characters, and the prompt tokens that an engine counted for it.
type CalibrationPoint struct {
	Chars  int
	Tokens int
}

// Calibrate draws the line through two points. Its slope is what a token holds; where it meets no characters is what the
// template costs. A line that meets it a little below zero, as a rounded one may, is replaced by the one through the longer
// message and the origin. Who counted is for the caller to note.
func Calibrate(points []CalibrationPoint) (fixtures.Calibration, error) {
	if len(points) != 2 {
		return fixtures.Calibration{}, fmt.Errorf("calibrate: expected 2 points, received %d", len(points))
	}
	short, long := points[0], points[1]
	if short.Chars > long.Chars {
		short, long = long, short
	}
	said := fmt.Sprintf("%d characters counted as %d tokens, %d as %d", short.Chars, short.Tokens, long.Chars, long.Tokens)
	switch {
	case short.Chars <= 0 || short.Chars == long.Chars:
		return fixtures.Calibration{}, fmt.Errorf("calibrate: %s: expected two messages of different length, neither empty", said)
	case short.Tokens <= 0:
		return fixtures.Calibration{}, fmt.Errorf("calibrate: %s: expected at least one token each", said)
	case short.Tokens >= long.Tokens:
		return fixtures.Calibration{}, fmt.Errorf("calibrate: %s: expected more tokens for the longer message", said)
	}
	c := fixtures.Calibration{CharsPerToken: float64(long.Chars-short.Chars) / float64(long.Tokens-short.Tokens)}
	c.OverheadTokens = float64(short.Tokens) - float64(short.Chars)/c.CharsPerToken
	// A tenth of the shorter count is far beyond what rounding and the texts' differences do.
	if c.OverheadTokens < -float64(short.Tokens)/10 {
		return fixtures.Calibration{}, fmt.Errorf("calibrate: %s: an empty message would have %.1f tokens, so that not all tokens "+
			"of the longer message are its own", said, c.OverheadTokens)
	}
	if c.OverheadTokens < 0 {
		c.CharsPerToken, c.OverheadTokens = float64(long.Chars)/float64(long.Tokens), 0
	}
	if err := checkCalibration(c); err != nil {
		return fixtures.Calibration{}, fmt.Errorf("calibrate: %s: %w", said, err)
	}
	return c, nil
}

func checkCalibration(c fixtures.Calibration) error {
	if !(c.CharsPerToken > minCharsPerToken && c.CharsPerToken <= maxCharsPerToken) {
		return fmt.Errorf("%v characters per token: want more than %v and at most %v",
			c.CharsPerToken, minCharsPerToken, maxCharsPerToken)
	}
	if !(c.OverheadTokens >= 0 && c.OverheadTokens <= maxPlannedTokens) {
		return fmt.Errorf("%v tokens around a message: want 0 to %d", c.OverheadTokens, maxPlannedTokens)
	}
	return nil
}
