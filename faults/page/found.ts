/** What the campaigns found in the product, by hand: each is mended, has a test of its own, and stands in CHANGELOG.md. */
export interface Found {
  readonly method: string
  readonly what: string
  readonly now: string
}

export const FOUND: readonly Found[] = [
  {
    method: 'simulation',
    what: 'A write was cut off, its tool had a probe, the probe said "not done", and it was done again although a paused worker could still do it.',
    now: 'Whoever could still do it is ended first, or named in the doubt.',
  },
  {
    method: 'simulation',
    what: 'A person could say "it did not happen" of a write that a paused worker could still do.',
    now: 'The same: the answer waits for the proof that nobody can do it any more.',
  },
  {
    method: 'zombies',
    what: 'A write in doubt that was to be done again when its run ended counted as withdrawn, and a stopped worker did it after all.',
    now: 'It is in doubt again, and listed.',
  },
  {
    method: 'postgres',
    what: 'A function whose worker could not renew its lease just when a step was to begin, or while it waited for its model, was held for ever.',
    now: 'It is let go, and taken up again.',
  },
  {
    method: 'postgres',
    what: 'A program whose first call of a function met a database that was not there could not call that function any more.',
    now: 'The next call tries again.',
  },
  {
    method: 'power-loss',
    what: 'The folders that a first hook made were not synced: a power loss right after could take away what it had acknowledged.',
    now: 'They are synced before anything is acknowledged.',
  },
  {
    method: 'kill',
    what: 'A process that was killed while it made the key of secrets kept the next one with the same process number from making it.',
    now: 'The next one makes it.',
  },
  {
    method: 'fuzzing',
    what: 'A model that called a tool by a name too long, cut in the middle of a character, made its run fail and be taken up again twenty times, each time with a call to the model.',
    now: 'The cut leaves whole characters, and the model is told that there is no such tool.',
  },
  {
    method: 'fuzzing',
    what: 'A provider that said nonsense about the tokens it took (a text, no number, less than none) made amounts that no limit could be compared with.',
    now: 'What is no count is none, and there is a most.',
  },
  {
    method: 'fuzzing',
    what: 'Every request whose body came in chunks was answered with 500.',
    now: 'It is read like any other, up to the same limit.',
  },
  {
    method: 'fuzzing',
    what: 'A configuration with gigantic names was compared with what is known letter by letter, for minutes, and the error repeated them at every line.',
    now: 'Nobody is asked whether he meant another name of that length; an error shows the beginning of it.',
  },
]
