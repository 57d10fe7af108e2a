// Package reports draws results: the story of a run, a space-time diagram, a
// summary, measures, and the same for machines. It reads what a run recorded
// and computes no verdicts; it must not know any design or scenario.
package reports
