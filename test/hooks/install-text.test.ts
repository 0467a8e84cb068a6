import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { factsOf } from '../../src/hooks/install/client.ts'
import type { ClientName } from '../../src/hooks/install/client.ts'
import { unifiedDiff } from '../../src/hooks/install/diff.ts'
import { isOurs, targetOf, wantedHandlers } from '../../src/hooks/install/entries.ts'
import { parseTree, valueOf } from '../../src/base/json-tree.ts'
import { withEntries, withoutEntries } from '../../src/hooks/install/merge.ts'
import { lessOurs, samples, wantedFor } from './install-support.ts'

const RUNS = process.env['HOLDFAST_DEEP'] === undefined ? 150 : 5_000

const settings = (client: ClientName, text: string) => ({
  path: 'settings.json',
  text,
  comments: factsOf(client).comments,
})
const install = (client: ClientName, text: string, more = {}) =>
  withEntries(settings(client, text), wantedHandlers(wantedFor(client, more)))
const remove = (client: ClientName, text: string, formerly?: unknown) =>
  withoutEntries(settings(client, text), formerly)
const valueIn = (client: ClientName, text: string) => valueOf(parseTree(text, factsOf(client)))
const isEmptyThing = (value: unknown) => typeof value === 'object' && value !== null && Object.keys(value).length === 0

/** `{}` may have been written with a blank or a comment in it; only the backup has that. */
const hasEmptyPlace = ({ hooks, ...others }: { hooks?: unknown }) =>
  hooks === undefined ? isEmptyThing(others) : isEmptyThing(hooks) || Object.values(hooks as object).some(isEmptyThing)

describe('the text of settings', () => {
  test('installing and removing gives back the same text, whatever it was', () => {
    fc.assert(
      fc.property(samples, ({ client, value, text }) => {
        const removed = remove(client, install(client, text), value)
        if (hasEmptyPlace(value)) expect(valueIn(client, removed)).toEqual(valueIn(client, text))
        else expect(removed).toBe(text)
      }),
      { numRuns: RUNS },
    )
  })

  test('whatever is not ours is the same after installing, in the same order', () => {
    fc.assert(
      fc.property(samples, ({ client, value, text }) => {
        const installed = valueIn(client, install(client, text)) as typeof value
        const { hooks = {}, ...others } = lessOurs(installed) as typeof value
        const { hooks: formerly = {}, ...formerOthers } = value
        expect(JSON.stringify(others)).toBe(JSON.stringify(formerOthers))
        const kept = Object.entries(hooks as object).filter(([event]) => Object.hasOwn(formerly as object, event))
        expect(JSON.stringify(kept)).toBe(JSON.stringify(Object.entries(formerly as object)))
      }),
      { numRuns: RUNS },
    )
  })

  test('installing twice changes nothing, and an update of the paths is removed as if it had been the first', () => {
    fc.assert(
      fc.property(samples, ({ client, value, text }) => {
        const once = install(client, text)
        expect(install(client, once)).toBe(once)
        const moved = install(client, once, { script: '/elsewhere/bin/hook.cjs', home: '/var/lib/holdfast' })
        expect(moved).not.toBe(once)
        expect(remove(client, moved, value)).toBe(remove(client, once, value))
      }),
      { numRuns: RUNS },
    )
  })

  test('what others add in between stays, and what we left empty does not', () => {
    fc.assert(
      fc.property(samples, fc.boolean(), ({ client, value, text }, before) => {
        const event = Object.keys(factsOf(client).events)[0]!
        const change = (settingsValue: Record<string, unknown>) => {
          const hooks = (settingsValue['hooks'] ?? {}) as Record<string, unknown[]>
          const own = { hooks: [{ type: 'command', command: 'mine' }] }
          const list = hooks[event] ?? []
          return { ...settingsValue, added: 1, hooks: { ...hooks, [event]: before ? [own, ...list] : [...list, own] } }
        }
        const changed = JSON.stringify(
          change(valueIn(client, install(client, text)) as Record<string, unknown>),
          null,
          2,
        )
        const removed = valueIn(client, remove(client, changed, value))
        expect(removed).toEqual(valueIn(client, JSON.stringify(change(value))))
      }),
      { numRuns: RUNS },
    )
  })

  test('indentation, line ends and comments are those of the owner', () => {
    const text = '{\r\n\t// mine\r\n\t"theme": "dark" // yes\r\n}\r\n'
    const installed = install('gemini', text)
    expect(
      installed.startsWith(
        '{\r\n\t// mine\r\n\t"theme": "dark", // yes\r\n\t"hooks": {\r\n\t\t"SessionStart": [\r\n\t\t\t{',
      ),
    ).toBe(true)
    expect(installed.replaceAll('\r\n', '')).not.toContain('\n')
    expect(remove('gemini', installed)).toBe(text)
  })

  test('two entries of ours become one, and one behind a matcher hears everything again', () => {
    const ours = wantedHandlers(wantedFor('claude')).get('Stop')
    const text = JSON.stringify({
      hooks: {
        Stop: [{ hooks: [{ type: 'command', command: 'mine' }, ours] }, { hooks: [ours] }],
        SessionEnd: [{ matcher: 'x', hooks: [ours] }],
      },
    })
    const { hooks } = valueIn('claude', install('claude', text)) as { hooks: Record<string, unknown> }
    const waiter = { hooks: [wantedHandlers(wantedFor('claude')).get('Stop#wait')] }
    expect(hooks['Stop']).toEqual([{ hooks: [{ type: 'command', command: 'mine' }, ours] }, waiter])
    expect(hooks['SessionEnd']).toEqual([{ hooks: [wantedHandlers(wantedFor('claude')).get('SessionEnd')] }])
  })

  test('what stands behind an entry of ours is not pulled into a comment before it', () => {
    const group = (handler: unknown) => JSON.stringify({ hooks: [handler] })
    const ours = group(wantedHandlers(wantedFor('gemini')).get('AfterAgent'))
    const other = group({ type: 'command', command: 'mine' })
    const removed = remove('gemini', `{"hooks": {"AfterAgent": [ // first\n ${ours}, ${other}]}}`)
    expect(valueIn('gemini', removed)).toEqual({ hooks: { AfterAgent: [JSON.parse(other)] } })
  })

  test('a Stop that somebody made asynchronous is made synchronous again [M7]', () => {
    const text = install('claude', '{}')
    const asynchronous = text.replace('"timeout": 60', '"timeout": 60,\n "async": true')
    expect(asynchronous).not.toBe(text)
    expect(valueIn('claude', install('claude', asynchronous))).toEqual(valueIn('claude', text))
  })
})

describe('our entries', () => {
  test('are known again by script and mark, in both forms, with blanks and quotes in their paths', () => {
    for (const client of ['claude', 'codex', 'gemini'] as const) {
      const handler = wantedHandlers(wantedFor(client, { home: "/it's a home" }))
        .values()
        .next().value!
      expect(isOurs(handler)).toBe(true)
      expect(targetOf(handler)).toEqual({
        node: '/opt/node/bin/node',
        script: "/opt/hold fast's/bin/hook.cjs",
        home: "/it's a home",
        store: undefined,
      })
    }
    expect(isOurs({ type: 'command', command: 'node /mine/hook.cjs claude' })).toBe(false)
    expect(isOurs({ type: 'command', command: 'echo --holdfast-hook' })).toBe(false)
  })

  test('are synchronous commands, with timeouts in the unit of the client [M7]', () => {
    const stop = (client: ClientName, event: string) => wantedHandlers(wantedFor(client)).get(event)
    expect(stop('claude', 'Stop')).toEqual({
      type: 'command',
      command: '/opt/node/bin/node',
      args: ["/opt/hold fast's/bin/hook.cjs", 'claude', '--holdfast-hook'],
      timeout: 60,
    })
    expect(stop('codex', 'Stop')).toMatchObject({ timeout: 60 })
    expect(stop('gemini', 'AfterAgent')).toMatchObject({ timeout: 60_000 })
    expect(Object.keys(factsOf('claude').events)).toEqual(
      expect.arrayContaining(['SessionStart', 'SessionEnd', 'Stop', 'StopFailure', 'SubagentStop', 'Notification']),
    )
  })

  test('of tool calls go over HTTP and name the token, but do not hold it', () => {
    const handlers = wantedHandlers(wantedFor('claude', { daemon: 'http://127.0.0.1:4780' }))
    expect(handlers.get('PreToolUse#http')).toMatchObject({
      type: 'http',
      headers: { Authorization: 'Bearer $HOLDFAST_TOKEN' },
      allowedEnvVars: ['HOLDFAST_TOKEN'],
    })
    expect(isOurs(handlers.get('PostToolUse#http'))).toBe(true)
  })

  test('a path that Gemini would take for a variable is refused', () => {
    expect(() => wantedHandlers(wantedFor('gemini', { script: '/a/$b/bin/hook.cjs' }))).toThrow(/dollar sign/)
  })
})

test('the diff is what diff -u says', () => {
  const before = Array.from({ length: 20 }, (_, index) => `${index}\n`).join('')
  const after = before.replace('3\n', '3\nnew\n').replace('15\n', '').replace('16\n', 'sixteen\n')
  expect(unifiedDiff('f', before, after)).toBe(
    '--- f\n+++ f\n@@ -2,6 +2,7 @@\n 1\n 2\n 3\n+new\n 4\n 5\n 6\n@@ -13,8 +14,7 @@\n 12\n 13\n 14\n-15\n-16\n+sixteen\n 17\n 18\n 19\n',
  )
  expect(unifiedDiff('f', undefined, 'a')).toBe(
    '--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a\n\\ No newline at end of file\n',
  )
  expect(unifiedDiff('f', 'a', 'a')).toBe('')
})
