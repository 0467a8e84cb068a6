import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { integer, row, text } from '../../src/store/row.ts'
import { sql } from '../../src/store/sql.ts'
import { all, single } from '../../src/store/transition.ts'
import { countMessages } from '../../src/threads/message.ts'
import { homePaths } from '../../src/workers/home.ts'
import { builtFixture } from '../support/built-fixture.ts'
import type { AgentInstallation } from '../support/agents.ts'
import { PROGRAM, startProcess } from '../support/holdfast.ts'
import type { Ended, Running } from '../support/holdfast.ts'
import { assertInvariants } from '../support/invariants.ts'
import { printedChance } from '../support/seed.ts'
import type { Chance } from '../support/seed.ts'
import { engines, install, withBoss } from './support.ts'

const PRODUCER = builtFixture(new URL('./fixtures/producer.ts', import.meta.url))
const isDeep = process.env['HOLDFAST_DEEP'] === '1'
const SIZE = isDeep
  ? { producers: 10, children: 10, each: 100, limit: 100 }
  : { producers: 2, children: 5, each: 20, limit: 40 }
const TOTAL = SIZE.producers * SIZE.children * SIZE.each

/** Longer than any of them needs to start, so that a kill meets every part of its life. */
const LIFE_MS = 700

interface Kills {
  count: number
  readonly failures: string[]
}

/** Starts it again and again, killing it at a random moment, until it once comes to its end by itself. */
async function mortal(start: () => Running, chance: Chance, kills: Kills): Promise<void> {
  for (;;) {
    const running = start()
    const timer = setTimeout(() => running.kill('SIGKILL'), chance.below(LIFE_MS))
    // Every third life is spared, so that all of it ends.
    if (chance.below(3) === 0) clearTimeout(timer)
    const { code, stderr } = await running.ended
    clearTimeout(timer)
    if (code === 0) return
    // Only a signal leaves no code: whoever ends with one has failed by itself.
    if (code === null) kills.count += 1
    else kills.failures.push(stderr)
  }
}

class Chaos {
  readonly place: AgentInstallation
  readonly chance: Chance
  readonly kills: Kills = { count: 0, failures: [] }
  readonly printed: string[] = []
  isOver = false

  constructor(place: AgentInstallation, chance: Chance) {
    this.place = place
    this.chance = chance
  }

  produce(number: number): Promise<void> {
    const url = this.place.storeUrl ?? `sqlite:${homePaths(this.place.home).database}`
    const first = String(number * SIZE.children)
    const args = [PRODUCER, url, 'boss', this.log(number), first, String(SIZE.children), String(SIZE.each)]
    return mortal(() => startProcess(process.execPath, args, {}), this.chance, this.kills)
  }

  log = (number: number) => join(this.place.folder, `acknowledged-${number}`)

  drain(): Running {
    return this.place.start(['inbox', 'drain', 'boss', '--json', '--limit', String(SIZE.limit)])
  }

  /**
   * Drains that are killed while they read or print, or in the moment after, when they acknowledge. What they have printed
   * counts as printed.
   */
  async consume(): Promise<void> {
    while (!this.isOver) {
      const [atFirstWord, lifeMs] = [this.chance.below(2) === 0, this.chance.below(LIFE_MS)]
      const { code, stdout, stderr } = await this.doomedDrain(atFirstWord, lifeMs)
      if (code === null) this.kills.count += 1
      else if (code !== 0) this.kills.failures.push(stderr)
      this.printed.push(...idsIn(stdout))
    }
  }

  doomedDrain(atFirstWord: boolean, lifeMs: number): Promise<Ended> {
    const store = this.place.storeUrl === undefined ? {} : { HOLDFAST_STORE: this.place.storeUrl }
    const { PATH, NODE_COMPILE_CACHE } = process.env
    const env = { PATH, NODE_COMPILE_CACHE, HOLDFAST_HOME: this.place.home, ...store }
    const args = [
      '--config',
      this.place.configuration,
      'inbox',
      'drain',
      'boss',
      '--json',
      '--limit',
      String(SIZE.limit),
    ]
    const child = spawn(PROGRAM, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const timer = atFirstWord ? undefined : setTimeout(() => child.kill('SIGKILL'), lifeMs)
    let [stdout, stderr] = ['', '']
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString()
      if (atFirstWord && stdout.includes('msg_')) child.kill('SIGKILL')
    })
    return new Promise((resolve) => {
      child.once('close', (code) => {
        clearTimeout(timer)
        resolve({ code, stdout, stderr })
      })
    })
  }

  async haunt(): Promise<void> {
    while (!this.isOver) {
      const daemon = this.place.start(['up', '--port', '0'])
      await new Promise((resolve) => setTimeout(resolve, 500 + this.chance.below(2 * LIFE_MS)))
      daemon.kill('SIGKILL')
      await daemon.ended
      this.kills.count += 1
    }
  }

  /** Nobody is killed any more: what is left comes out. */
  async settle(): Promise<void> {
    for (;;) {
      const { code, stdout, stderr } = await this.drain().ended
      if (code !== 0) throw new Error(stderr)
      const ids = idsIn(stdout)
      if (ids.length === 0) return
      this.printed.push(...ids)
    }
  }
}

const idsIn = (printed: string) => Array.from(printed.matchAll(/^ {6}"id": "(msg_[0-9a-f]+)"/gm), (match) => match[1]!)

const eventCount = row({ id: text(), count: integer })
const consumptions = single(() =>
  all(eventCount, sql`select data as id, count(*) as count from events where type = 'message.consumed' group by data`),
)
const acceptances = single(() =>
  all(eventCount, sql`select type as id, count(*) as count from events where type = 'message.accepted' group by type`),
)

describe.each(engines)('producers, consumers and daemons that are killed at random on $engine', ({ engine }) => {
  test(
    `every message is printed, and acknowledged once [M4] [M5] [M8] [inbox/never-lost] [inbox/effect-once]`,
    async () => {
      const place = install(engine, { lease: '1s' })
      const store = await withBoss(place)
      const chaos = new Chaos(place, printedChance(`chaos on ${engine}`))
      const around = [chaos.consume(), chaos.consume(), chaos.haunt()]
      const begun = performance.now()
      await Promise.all(Array.from({ length: SIZE.producers }, (_, number) => chaos.produce(number)))
      chaos.isOver = true
      await Promise.all(around)
      await chaos.settle()
      const counts = Object.fromEntries((await store.read(countMessages)).map(({ state, count }) => [state, count]))
      const taken = await store.read(consumptions)
      const distinct = new Set(chaos.printed)
      console.log(
        `${engine}: ${SIZE.producers * SIZE.children} children, ${TOTAL} messages, ${chaos.kills.count} kills, printed ${chaos.printed.length} times, ${Math.round((performance.now() - begun) / 1_000)} s`,
      )
      expect(chaos.kills.failures).toEqual([])
      expect(counts).toEqual({ consumed: TOTAL })
      expect(await store.read(acceptances)).toMatchObject([{ count: TOTAL }])
      expect(distinct.size).toBe(TOTAL)
      expect([taken.length, taken.filter(({ count }) => count !== 1)]).toEqual([TOTAL, []])
      // Nothing was acknowledged to a producer that is not there.
      const acknowledged = Array.from({ length: SIZE.producers }, (_, number) =>
        readFileSync(chaos.log(number), 'utf8'),
      )
      expect(new Set(acknowledged.join('').split('\n').filter(Boolean)).size).toBe(TOTAL)
      await assertInvariants(store)
    },
    isDeep ? 900_000 : 120_000,
  )
})
