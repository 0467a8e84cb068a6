import type { Harm } from './described.ts'

/** What the campaigns found in the product, by hand: each is mended, has a test of its own, and stands in CHANGELOG.md. */
export interface Found {
  readonly method: string
  readonly what: string
  readonly now: string
}

export const FOUND: readonly Found[] = [
  {
    method: 'zombies',
    what: 'On PostgreSQL, a worker that came back in the very instant in which its run was taken over began a step that the other one began too: it happened twice.',
    now: 'The claim is held until the commit of what begins by it.',
  },
  {
    method: 'zombies',
    what: 'A database that was away for a moment while a worker started kept it from starting, in a program for good.',
    now: 'What others lost is looked for again at the next tick.',
  },
  {
    method: 'zombies',
    what: 'A daemon that was paused while it forgot what is old did not end before it had rested four times as long.',
    now: 'It ends at once.',
  },
  {
    method: 'simulation',
    what: 'A run waited for what an ended run on its thread had left in doubt, and slept for ever when that was decided.',
    now: 'The decision wakes whoever waits for it, and the run names what it waits for.',
  },
  {
    method: 'simulation',
    what: 'A person could say "it did not happen" of a step of a cancelled function while a paused worker could still do it, and did.',
    now: 'Whoever could still do it is ended first.',
  },
  {
    method: 'hostile-tools',
    what: 'Without cgroups and namespaces, a process that forks and ends at once, in a session of its own each time, outlived its run.',
    now: 'What is born during a look is looked at too, until there is nobody new.',
  },
  {
    method: 'sick-disk',
    what: 'A failing disk (EIO) under a file of ours was told without a code and without what to do.',
    now: 'It has a code and a remedy, as a full one has.',
  },
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
    method: 'reading',
    what: 'A program whose first call of a function met a database that was not there could not call that function any more.',
    now: 'The next call tries again.',
  },
  {
    method: 'power-loss',
    what: 'The folders that a first hook made were not synced: a power loss right after could take away what it had acknowledged.',
    now: 'They are synced before anything is acknowledged.',
  },
  {
    method: 'reading',
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
  {
    method: 'power-loss',
    what: 'A git transaction that landed on a branch which nobody had checked out any more was told before the name of that branch was synced: with the repository on another disk than the database, a power loss right after could take it back.',
    now: 'The folder of a branch is synced before its landing is told.',
  },
  {
    method: 'model-based',
    what: 'On PostgreSQL the log told of the dead letters of a removed thread, and of the messages of an acknowledged delivery, in any order.',
    now: 'In the order in which they came, on both databases.',
  },
  {
    method: 'fuzzing',
    what: 'A call that a person was asked about was answered in its client after the turn had ended: the run went on to wait for a decision that nobody could make.',
    now: 'It waits for its client, as every turn does whose questions are answered.',
  },
  {
    method: 'fuzzing',
    what: 'The address of an MCP server with a name of some ten thousand letters ended in a raw `TypeError`.',
    now: 'It is refused in words, as every other that is none.',
  },
  {
    method: 'fuzzing',
    what: 'A hook that named an error by a word that every object has (`__proto__`) ended in an error of the database.',
    now: 'What comes from outside is looked up in maps.',
  },
  {
    method: 'zombies',
    what: 'A write in doubt was run again, as a person said, although the paused worker had woken and done it after the person had looked.',
    now: 'The probe of a write is asked once more before it is run again, and the word of who had begun it counts until then.',
  },
  {
    method: 'zombies',
    what: 'A command that changed hands twice was looked for in the home of its second worker, not found there, and its run was lost.',
    now: 'It is looked for where it was started, and a stop for a lost lease carries a fence.',
  },
  {
    method: 'zombies',
    what: 'A run that was ended by a worker whose clock was 400 days behind was forgotten by a daemon with the right clock, as one of that age.',
    now: 'Nothing is forgotten sooner than it would be had it ended when it was asked for, and a clock that is suddenly far ahead is not believed for a day.',
  },
  {
    method: 'simulation',
    what: 'A disk that failed while somebody looked who could still do a write failed its function; a person said that the write did not happen, and the paused worker did it.',
    now: 'The look is repeated, whoever could still do it is ended however the function ends, and that it was done counts over what others said.',
  },
  {
    method: 'zombies',
    what: 'A clock that was suddenly far ahead kept runs and events for its day of doubt, but not delivered messages, acts and the workers of other machines.',
    now: 'It keeps them too.',
  },
  {
    method: 'sick-disk',
    what: 'A daemon whose token file could not be read spoke of it without a code.',
    now: 'It has a code and a remedy.',
  },
  {
    method: 'model-based',
    what: 'The word of a worker counted for a write that it had never begun.',
    now: 'It is refused.',
  },
  {
    method: 'fuzzing',
    what: 'Refusals of settings, durations, schemas and home folders repeated a hundred thousand letters, or were the raw words of Node or of the system.',
    now: 'They are sentences of ours, and repeat the beginning.',
  },
  {
    method: 'power-loss',
    what: 'What a power loss had left of the private tree of a git transaction, with files that were missing or empty, was landed.',
    now: 'A tree of another boot is relied upon only where it was written out after the last that was done in it.',
  },
]

const LONG_HOME =
  'a home folder whose name no file can have (sixty thousand letters, a NUL) was refused by the words of the system, and is by ours now; a test has it'

/** What is known of a case that failed; without a harm it was the check that was wrong. */
export interface Explained {
  readonly harm?: Harm
  readonly words: string
}

/** By method and seed. */
export const EXPLAINED: Readonly<Record<string, Explained>> = {
  'fuzzing 5672': { harm: 'crash', words: LONG_HOME },
  'fuzzing 6698': { harm: 'crash', words: LONG_HOME },
  'fuzzing 19569': {
    harm: 'crash',
    words:
      'a setting that is an object with a `toString` of its own, where one of a few words was wanted, was refused by a `TypeError`, and is by a sentence now; a test has it',
  },
  ...Object.fromEntries(
    [16285, 16291, 16297, 16303, 16309, 16315, 16321].map((seed) => [
      `fuzzing ${seed}`,
      {
        harm: 'stuck',
        words:
          'of one store, one case: a client had said that a call, for which a person was asked, was answered there, after its turn had ended; the turn went on to say that it waits for a decision, although nobody could make one. It waits for its client now; a test has it',
      },
    ]),
  ),
  'fuzzing 11973': {
    harm: 'crash',
    words:
      'a schema whose type had fifty thousand characters was refused in a sentence that repeated all of them; it repeats the beginning now, and a test has it',
  },
  'fuzzing 7911': {
    harm: 'crash',
    words:
      'of the address of an MCP server with a very long name Node says that it can be read, and then does not: the configuration was refused by a `TypeError`, and is by a sentence now; a test has it',
  },
  'fuzzing 1753': {
    harm: 'crash',
    words:
      'the end of a session whose error was called `__proto__` was looked up in an object, found there what every object has, and the database refused that: the event was answered with an error. The word is in a test now',
  },
  'simulation 153': {
    words:
      'the wall clock was set back by ten minutes, and the world was judged before what waits for a time of that clock could go on; nothing was lost, and worlds wait for it now',
  },
  'zombies 551': {
    harm: 'twice',
    words:
      'a worker was paused in front of a write, and its run taken over; a person looked, saw nothing, and had it run again; meanwhile the worker woke, did it and ended, so that nobody stood in the way any more, and it was done again. Where a write has a probe, that is asked once more now before it is run again, and the word of who had begun it counts until then; tests have both',
  },
  'zombies 866': { harm: 'twice', words: 'the same, of a tool that has no probe' },
  'planted 17': {
    words:
      'of the check: the test that is to see it has the program run by a user who may do little, and that one could not enter the folder with the planted bug; it was red without a bug, too',
  },
  'simulation 17640': {
    words:
      'of the check: a person said of a call that gave work to a child that it had not happened, by a ledger that has no children in it. The person looks for the child now',
  },
  'simulation 10599': {
    harm: 'overwritten',
    words:
      'a worker was paused in front of a write of a function; whoever took it over met a disk that failed just when it looked who could still do it, and the function was failed for that; a person looked, saw nothing, and said that it did not happen; the worker woke and did it. Such a look is repeated now; whoever could still do it is ended however the function ends; and that it was done counts over what others said, when the run is over. Tests have all three, and with the last alone the seed passes',
  },
  'zombies 3262': {
    harm: 'twice',
    words:
      'on PostgreSQL a step was done twice: its worker came back in the very instant in which its run was taken over, and the look at its claim was before that and the commit of its intent after it. The claim is held until the commit now. A test has both orders, and one of a cancel',
  },
  'zombies 2832': {
    harm: 'stuck',
    words:
      'a daemon that was paused while it forgot what is old took the pause for work, and rested four times as long before it ended. It ends at once now; a test has it',
  },
  'zombies 2380': {
    harm: 'lost',
    words:
      'a completion that had been recorded and consumed by a worker whose clock was 400 days behind was that old for another one, and was forgotten. It counts from when its run was asked for; a test has it',
  },
  ...Object.fromEntries(
    [2624, 3424, 3736, 3976, 5776, 6120].map((seed) => [
      `zombies ${seed}`,
      {
        words:
          'a worker that was stopped while it started, and found the network gone when it went on, did not start. What others lost is looked for again at the next tick, and it starts; a test has it',
      },
    ]),
  ),
  ...Object.fromEntries(
    [4505, 6252].map((seed) => [
      `zombies ${seed}`,
      {
        words:
          'of the check: by a clock that is years off a run had timed out, and the person in the test went on asking for one of its writes to be done again, although the answer was that nobody is there to do it',
      },
    ]),
  ),
  ...Object.fromEntries(
    [480, 705, 1353, 2003].map((seed) => [
      `hostile-tools ${seed}`,
      { words: 'of the check: a file that was removed while the disk it takes was counted broke the case' },
    ]),
  ),
  'zombies 1100': {
    harm: 'lost',
    words:
      'a run that a worker had ended whose clock was 400 days behind was that old for a daemon with the right clock, and was forgotten as such, after 90 days. Nothing is forgotten sooner than it would be had it ended when it was asked for; and a clock that is suddenly far ahead has a day to be set right before anything is forgotten. Tests have both',
  },
  ...Object.fromEntries(
    [4069, 4182, 4203, 4351].map((seed) => [
      `model-based ${seed}`,
      {
        harm: 'unequal',
        words:
          'the word of who had begun a write counted for the first time also where a person has it run again, and the model did not know that; it does now, and so it was found that the same word counted for a write that had never begun: nobody says that, and it is refused now. The seed passes',
      },
    ]),
  ),
  'fuzzing 26904': {
    words:
      "of the check: a token that was to be the owner's with something wrong in it came out as the owner's own, and what the owner asked for was done",
  },
  'fuzzing 23955': {
    harm: 'crash',
    words:
      'a duration of a hundred thousand letters was refused in a sentence that repeated all of them; it repeats the beginning now, and a test has it',
  },
  'zombies 1': {
    harm: 'failed',
    words:
      'a command that changed hands twice was looked for in the home folder of its second worker, not found there, and ended; the run was lost and said so, nothing was done twice. It is looked for where it was started, and a stop for a lost lease carries a fence; the seed is a test now',
  },
}
