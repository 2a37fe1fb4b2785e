package settings

import "plumbline/fixtures"

// Declared is what the operator declared, for the run's record.
func (s *Settings) Declared() fixtures.Declared {
	return fixtures.Declared{
		Quantization:      s.Quantization,
		ModelRevision:     s.ModelRevision,
		SourceRevision:    s.SourceRevision,
		TokenizerRevision: s.TokenizerRevision,
		CustomPack:        s.CustomPack,
		BuildOptions:      s.BuildOptions,
		Background:        s.Background,
		Track:             s.Track,
		TrackNotes:        s.TrackNotes,
		SkipModelHash:     s.SkipModelHash,
	}
}
