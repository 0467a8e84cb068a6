import { expect, test } from 'vitest'

import { Rounds } from './rounds.ts'
import type { AnyChange } from './rounds.ts'
import { integer, row } from './row.ts'
import { sql } from './sql.ts'
import { GIVEN, change, changed, foreseen } from './transition.ts'
import type { Joint, Transition } from './transition.ts'

const NUMBERS: Joint = {
  table: 'numbers',
  columns: [['id', 'word']],
  key: ['id'],
  likely: true,
  many: sql`insert into numbers (id) select given.id from ${GIVEN}`,
}
const NUMBERED: Joint = { ...NUMBERS, returns: ['seq'] }
const seqRow = row({ seq: integer })

const store = (id: string) => changed(seqRow, NUMBERED, [id])

function* stored(id: string): Transition<{ readonly id: string; readonly seq: number } | undefined> {
  const number = yield* store(id)
  yield* change(NUMBERS, [`${id} again`])
  return number === undefined ? undefined : Object.assign(number, { id })
}

const asAny = (made: unknown) => made as AnyChange

test('a row that comes with the commit is filled into what was made of it', () => {
  const rounds = new Rounds(true)
  rounds.add(asAny(stored), ['a'])
  rounds.add(asAny(stored), ['b'])
  expect(rounds.next()).toBeUndefined()
  expect(rounds.values()).toEqual([{ id: 'a' }, { id: 'b' }])
  const { telling, silent } = rounds.takeAhead()
  expect([...silent]).toEqual([[NUMBERS, ['a again', 'b again']]])
  rounds.hear(
    telling,
    telling.map((_, at) => ({ rows: [{ seq: at + 1 }], changes: 1 })),
  )
  expect(rounds.values()).toEqual([
    { id: 'a', seq: 1 },
    { id: 'b', seq: 2 },
  ])
})

test('one that does not come is no row without values', () => {
  const rounds = new Rounds(true)
  rounds.add(asAny(stored), ['a'])
  const { telling } = rounds.takeAhead()
  expect(() => rounds.hear(telling, [{ rows: [], changes: 0 }])).toThrow('was not')
})

test('nobody foresees what has to be waited for', () => {
  for (const joint of [NUMBERED, { ...NUMBERS, likely: false }]) {
    const query = change(joint, ['a'])
    function* waiting(it: string): Transition<string> {
      yield query
      return `${it} waited`
    }
    const course = foreseen(waiting, (ask, it) => {
      expect(it).toBe('it')
      ask.rows(joint).push('a')
      return 'did not wait'
    })
    expect(() => new Rounds(true).add(asAny(course), ['it'])).toThrow('nobody waits')
    // Where nobody hopes, nobody foresees.
    const careful = new Rounds(false)
    careful.add(asAny(course), ['it'])
    expect(careful.next()).toEqual([query])
  }
})

test('a row that is foreseen is filled in as well, and has to be likely', () => {
  const shortly = foreseen(stored, (ask, id) => {
    const number = ask.row(store(id))
    ask.rows(NUMBERS).push(`${id} again`)
    return Object.assign(number, { id })
  })
  const rounds = new Rounds(true)
  expect(rounds.add(asAny(shortly), ['a'])).toBe(2)
  const { telling, silent } = rounds.takeAhead()
  expect([...silent]).toEqual([[NUMBERS, ['a again']]])
  rounds.hear(telling, [{ rows: [{ seq: 7 }], changes: 1 }])
  expect(rounds.values()).toEqual([{ id: 'a', seq: 7 }])

  const hasty = foreseen(stored, (ask, id) => {
    const number = ask.row(changed(seqRow, { ...NUMBERED, likely: false }, [id]))
    return Object.assign(number, { id })
  })
  expect(() => new Rounds(true).add(asAny(hasty), ['a'])).toThrow('nobody waits')
})
