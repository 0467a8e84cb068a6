import { expect, test } from 'vitest'

import type { Outcome } from '../../faults/method.ts'
import { growing } from '../../faults/soak/gauges.ts'
import type { Sample } from '../../faults/soak/gauges.ts'
import { soakWith } from '../../faults/soak/method.ts'

test('a daemon killed under load again and again, beside one that is not: everything ends as it should, and is told once [durable/acknowledged] [runs/one-terminal] [inbox/effect-once]', async () => {
  const told: Outcome[] = []
  const soak = soakWith({ leastMs: 100, mostMs: 500, engine: 'sqlite' })
  await soak.run({ first: 1, most: 3, isOver: () => false, tell: (outcome) => told.push(outcome) })
  expect(told.map(({ seed, problems }) => ({ seed, problems }))).toEqual(
    [1, 2, 3].map((seed) => ({ seed, problems: [] })),
  )
  for (const { peaks } of told)
    expect(peaks).toEqual({
      'memory MiB': expect.toSatisfy((value: number) => value > 10),
      'open files': expect.toSatisfy((value: number) => value > 3),
      'WAL MiB': expect.any(Number),
    })
  expect(told.reduce((sum, { effects }) => sum + effects, 0)).toBeGreaterThan(0)
})

/** As many as 40 kills would have; memory, files and log grow by so much with each, and each run by so many bytes. */
const samples = (grows: { memory?: number; files?: number; wal?: number; aRun?: number }): Sample[] =>
  Array.from({ length: 40 }, (_, index) => {
    const { memory = 0, files = 0, wal = 0, aRun = 0 } = grows
    const noise = (index * 7) % 5
    const held = { memoryMiB: 120 + noise + memory * index, files: 30 + (noise % 2) + files * index }
    const runs = index * 50
    const databaseMiB = (runs * (8_000 + aRun * index)) / 2 ** 20
    return { runs, databaseMiB, walMiB: 4 + noise / 10 + wal * index, daemon: held, beside: held }
  })

test('what stays level is no problem; what grows with each kill is one, by its name', () => {
  expect(growing(samples({}))).toEqual([])
  expect(growing(samples({ memory: 5 }))).toEqual([
    expect.stringMatching(/^memory MiB of the daemon: 145\.0 at first, 295\.0 at last$/),
    expect.stringMatching(/^memory MiB of the daemon that is not killed: /),
  ])
  expect(growing(samples({ files: 1 }))).toHaveLength(2)
  expect(growing(samples({ wal: 0.5 }))).toEqual([expect.stringMatching(/^WAL MiB: /)])
  expect(growing(samples({ aRun: 200 }))).toEqual([expect.stringMatching(/^bytes a run: /)])
})
