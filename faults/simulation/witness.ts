import { DatabaseSync } from 'node:sqlite'

import { restartAction, startAction } from '../../src/actions/perform.ts'
import type { Start } from '../../src/actions/perform.ts'
import type { Action } from '../../src/actions/action.ts'
import { advanceRun } from '../../src/runs/step.ts'
import type { Advanced, StepsRef } from '../../src/runs/step.ts'
import { integer, row, text } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import type { Store } from '../../src/store/store.ts'
import { all, single } from '../../src/store/transition.ts'

/** Written by the database itself, in the commit in which a step begins: the fence that its run had then. */
const NOTES = `create table witness (run_seq integer, name text, fence integer);
  create trigger witness_step after insert on steps begin
    insert into witness select new.run_seq, new.name, fence from runs where seq = new.run_seq;
  end`

export function addNotes(path: string): void {
  const database = new DatabaseSync(path)
  database.exec(NOTES)
  database.close()
}

const notes = single(() =>
  all(row({ runSeq: integer, name: text(), fence: integer }), sql`select run_seq, name, fence from witness`),
)

interface Begun extends Pick<StepsRef, 'runId' | 'runSeq' | 'fence'> {
  readonly name: string
}

/** Who was told that he may begin what: to be held against what the database says. */
export class Witness {
  readonly #steps: Begun[] = []
  readonly #tries = new Map<string, string>()

  /** `by` was told this answer. */
  hear(by: string, change: unknown, args: readonly unknown[], answer: unknown): void {
    if (change === advanceRun) this.#hearStep(args as Parameters<typeof advanceRun>, answer as Advanced)
    if (change === startAction && (answer as Start).kind === 'started')
      this.#hearTry(by, (answer as Extract<Start, { kind: 'started' }>).action)
    if (change === restartAction && answer !== undefined) this.#hearTry(by, answer as Action)
  }

  #hearStep([{ runId, runSeq, fence }, , name]: Parameters<typeof advanceRun>, { kind }: Advanced): void {
    if (name !== undefined && kind === 'recorded') this.#steps.push({ runId, runSeq, fence, name })
  }

  #hearTry(by: string, { id, tries }: Action): void {
    this.#tries.set(`${id} ${tries}`, by)
  }

  /** Undefined: its answer was lost, so nobody knows. */
  whoTried({ id, tries }: Pick<Action, 'id' | 'tries'>): string | undefined {
    return this.#tries.get(`${id} ${tries}`)
  }

  /** Steps that somebody began who had lost their run. */
  async wrongSteps(store: Store): Promise<string[]> {
    const fences = new Map((await store.read(notes)).map(({ runSeq, name, fence }) => [`${runSeq} ${name}`, fence]))
    return this.#steps
      .filter(({ runSeq, name, fence }) => fences.get(`${runSeq} ${name}`) !== fence)
      .map(({ runId, name, fence }) => `step ${name} of ${runId} was begun by attempt ${fence}, which had lost it`)
  }
}
