import { h, setText } from './dom.js'

/** What things look like. Nothing here asks the daemon or decides anything. */

const ENDED = new Set(['succeeded', 'failed', 'cancelled'])
export const isActive = (run) => run !== undefined && !ENDED.has(run.state)

const STATE_WORDS = { in_doubt: 'in doubt', parked: 'waiting' }
const words = (state) => STATE_WORDS[state] ?? state

export function ago(iso, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - Date.parse(iso)) / 1000))
  if (seconds < 60) return 'now'
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`
}

function lasted(from, to) {
  const ms = Date.parse(to) - Date.parse(from)
  if (!(ms >= 0)) return ''
  if (ms < 1000) return `${ms} ms`
  return ms < 60_000
    ? `${(ms / 1000).toFixed(1)} s`
    : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`
}

const chip = (state) => h('span', { class: 'chip', 'data-state': state }, words(state))

/** One line of the list on the left. */
export function threadItem(thread, selected, onSelect) {
  const state = thread.run?.state ?? 'idle'
  const preview = thread.preview ?? thread.id
  return {
    key: thread.id,
    version: JSON.stringify([thread.run, preview, selected, ago(thread.createdAt)]),
    make: () =>
      h(
        'li',
        { 'data-thread': thread.id },
        h(
          'button',
          { type: 'button', 'aria-current': selected ? 'true' : undefined, onclick: () => onSelect(thread.id) },
          h('span', { class: 'dot', 'data-state': state, title: words(state) }),
          h('span', { class: 'preview' }, preview),
          h('span', { class: 'who quiet' }, thread.agent),
          h('time', { class: 'quiet', datetime: thread.createdAt }, ago(thread.createdAt)),
        ),
      ),
  }
}

/**
 * A thread as a list of things in their order: what was said, what was done, how each run stands. `live` is what is being
 * said and not recorded yet; a message and its place in the conversation have one key, so it does not move when it is taken.
 */
export function conversationItems(thread, live, actions) {
  const waiting = thread.messages.filter(({ state }) => state === 'pending' || state === 'leased')
  const runs = thread.runs.toReversed()
  const parts = {
    messages: thread.messages,
    entriesOf: Map.groupBy(thread.conversation, ({ runId }) => runId),
    actionsOf: Map.groupBy(thread.actions, ({ step }) => step),
  }
  const current = runs.find(isActive)
  const items = runs.flatMap((run) => runItems(parts, run, live.get(run.id), run === current ? waiting : [], actions))
  const rest = current === undefined ? waiting.map(messageItem) : []
  const dead = thread.messages.filter(({ state }) => state === 'dead').map(messageItem)
  return [...items, ...rest, ...dead]
}

function runItems({ messages, entriesOf, actionsOf }, run, live, waiting, actions) {
  const entries = entriesOf.get(run.id) ?? []
  const heard = new Set(entries.map(({ messageId }) => messageId))
  // A run that was stopped in the middle of its turn has taken messages of which the conversation says nothing.
  const taken = messages.filter(({ id, consumedByRun }) => consumedByRun === run.id && !heard.has(id))
  const shown = waiting.filter(({ id }) => live === undefined || live.before.has(id))
  const said = entries.flatMap((entry) => [
    entryItem(entry),
    ...(actionsOf.get(entry.seq) ?? []).map((action) => actionItem(action, actions)),
  ])
  return [
    ...(run.request.kind === 'command' ? [commandItem(run)] : []),
    ...said,
    ...[...taken, ...shown].map(messageItem),
    ...(live === undefined || isRecorded(live, entries) ? [] : [liveItem(run, live)]),
    ...waiting.filter((message) => !shown.includes(message)).map(messageItem),
    runItem(run, actions),
  ]
}

/** What was fetched once is drawn many times while a reply comes in word by word. */
function remembered(make) {
  const known = new WeakMap()
  return (thing) => {
    if (!known.has(thing)) known.set(thing, make(thing))
    return known.get(thing)
  }
}

/** The record of a reply takes the place of what was heard of it. */
function isRecorded({ text }, entries) {
  return entries.findLast(({ kind }) => kind === 'assistant')?.text.startsWith(text) === true
}

const entryItem = remembered((entry) => {
  const { kind, messageId, seq, text = '' } = entry
  // What nobody sent is a remark of the runtime's own.
  if (kind === 'user' && messageId === undefined) {
    return { key: `entry ${seq}`, version: text, make: () => h('li', { class: 'note quiet' }, text) }
  }
  if (kind === 'user') return userItem(messageId, text, '')
  if (kind === 'summary') {
    return {
      key: `entry ${seq}`,
      version: '',
      make: () => h('li', { class: 'note quiet' }, 'What came before was summarised.'),
    }
  }
  return { key: `entry ${seq}`, version: text, make: () => replyElement(text) }
})

const replyElement = (text) => h('li', { class: 'reply', hidden: text === '' }, h('p', { class: 'text' }, text))

const userItem = (key, text, note) => ({
  key,
  version: `${note} ${text}`,
  make: () =>
    h(
      'li',
      { class: 'user' },
      h('p', { class: 'text bubble' }, text),
      note !== '' && h('p', { class: 'quiet small' }, note),
    ),
})

const messageItem = ({ id, body, state, reason }) =>
  userItem(
    id,
    body.text ?? JSON.stringify(body),
    state === 'dead' ? `not delivered: ${reason ?? 'unknown reason'}` : '',
  )

/** What was heard of a reply: it goes on, or it was cut off with its run and is not part of the record. */
const liveItem = (run, { text }) => ({
  key: `live ${run.id} ${isActive(run)}`,
  version: text,
  make: () =>
    isActive(run)
      ? h('li', { class: 'reply live', 'data-live': run.id }, h('p', { class: 'text' }, text))
      : h('li', { class: 'reply quiet' }, h('p', { class: 'text' }, `${text.trimEnd()} … (cut off)`)),
  update: (element) => isActive(run) && setText(element.firstElementChild, text),
})

const pretty = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))

function brief(input) {
  const values = typeof input === 'object' && input !== null ? Object.values(input) : [input]
  return values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))).join(' · ')
}

function actionItem(action, { onDecide }) {
  const { id, tool, state, input, effect, repeatOf } = action
  return {
    key: id,
    version: JSON.stringify(action),
    make: () =>
      h(
        'li',
        { class: 'action', 'data-action': id, 'data-state': state },
        h(
          'details',
          // Nobody should say yes to what is folded away.
          { open: state === 'waiting' },
          h(
            'summary',
            {},
            h('span', { class: 'dot', 'data-state': state }),
            h('span', { class: 'tool mono' }, tool),
            h('span', { class: 'brief quiet' }, brief(input)),
            chip(repeatOf === undefined ? state : 'repeat'),
          ),
          h('div', { class: 'facts' }, ...actionFacts(action, effect)),
        ),
        state === 'waiting' && decisionButtons(id, onDecide),
      ),
  }
}

const decisionButtons = (actionId, onDecide) =>
  h(
    'p',
    { class: 'decision', role: 'group', 'aria-label': 'May it be done?' },
    ...['approve', 'skip', 'deny'].map((decision) =>
      h(
        'button',
        { type: 'button', 'data-decision': decision, onclick: () => onDecide(actionId, decision) },
        decision[0].toUpperCase() + decision.slice(1),
      ),
    ),
  )

function actionFacts(action, effect) {
  const { input, result, error, decision, settledBy, startedAt, settledAt, repeatOf, id } = action
  const facts = [
    fact('input', pretty(input)),
    result !== undefined && fact('result', pretty(result)),
    error !== undefined && fact('error', error),
  ]
  const small = [
    effect,
    decision && `${decision.kind === 'allow' ? 'allowed' : 'denied'}: ${decision.by}`,
    repeatOf && `answered from ${repeatOf}`,
    settledBy && `settled by ${settledBy}`,
    startedAt && settledAt && lasted(startedAt, settledAt),
    id,
  ].filter(Boolean)
  return [...facts, h('p', { class: 'quiet small' }, small.join(' · '))]
}

const fact = (name, text) => h('div', { class: 'fact' }, h('h3', { class: 'quiet' }, name), h('pre', {}, text))

function commandItem(run) {
  const { stdout, stderr } = run.result ?? {}
  const printed = (name, output) =>
    output === undefined || output.totalBytes === 0
      ? undefined
      : fact(
          name,
          output.truncated
            ? `${output.head}\n… ${output.totalBytes} bytes …\n${output.tail}`
            : output.head + output.tail,
        )
  return {
    key: `command ${run.id}`,
    version: JSON.stringify(run.result ?? null),
    make: () =>
      h(
        'li',
        { class: 'command' },
        h('pre', { class: 'argv' }, run.request.argv.join(' ')),
        printed('output', stdout),
        printed('errors', stderr),
      ),
  }
}

/** How a run stands: always one line at the same place, whatever its state. */
function runItem(run, { onCancel }) {
  const cancelling = isActive(run) && run.cancelRequestedAt !== undefined
  return {
    key: `run ${run.id}`,
    version: JSON.stringify([run.state, run.code, run.error, cancelling, run.parkedFor, run.endedAt]),
    make: () =>
      h(
        'li',
        { class: 'run', 'data-run': run.id, 'data-state': run.state },
        run.error !== undefined && h('p', { class: 'problem' }, run.error),
        h(
          'p',
          { class: 'run-line quiet small' },
          chip(cancelling ? 'cancelling' : run.state),
          h('span', { class: 'run-facts' }, runFacts(run)),
          isActive(run) &&
            h(
              'button',
              { type: 'button', class: 'cancel', disabled: cancelling, onclick: () => onCancel(run.id) },
              'Cancel',
            ),
        ),
      ),
  }
}

function runFacts(run) {
  const { inputTokens, outputTokens, costUsd } = run.usage
  const facts = [
    run.code,
    run.parkedFor && isActive(run) && `for ${run.parkedFor}`,
    run.endedAt && lasted(run.startedAt ?? run.createdAt, run.endedAt),
    run.endedAt && inputTokens + outputTokens > 0 && `${inputTokens} + ${outputTokens} tokens`,
    run.endedAt && costUsd > 0 && `$${costUsd.toFixed(4)}`,
    run.attempt > 1 && `attempt ${run.attempt}`,
    run.id,
  ]
  return facts.filter(Boolean).join(' · ')
}
