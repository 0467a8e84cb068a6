import { Problem, dropToken, follow, get, keepToken, post, takeToken } from './api.js'
import { byId, h, reconcile, setText } from './dom.js'
import { conversationItems, threadItem } from './view.js'

/** What this page knows. It is a picture of the daemon's record: events say what to look at again. */
const state = {
  threads: [],
  next: undefined,
  agents: [],
  selected: undefined,
  thread: undefined,
  /** Run to what is being said in it. */
  live: new Map(),
  seq: 0,
}

// Looking again

/** Between two looks at the same thing, so that a busy fleet does not keep the page busy. */
const BETWEEN_MS = 150

/** At most one request under way, and one more after it if something happened meanwhile. */
function refresher(look) {
  let running = false
  let again = false
  const run = async () => {
    if (running) return void (again = true)
    running = true
    do {
      again = false
      await look().catch(showTrouble)
      if (again) await pause(BETWEEN_MS)
    } while (again)
    running = false
  }
  return run
}

const refreshThreads = refresher(async () => {
  const page = await get(`/threads?limit=${Math.max(100, Math.min(1000, state.threads.length))}`)
  state.threads = page.items
  state.next = page.next
  drawThreads()
})

const refreshThread = refresher(async () => {
  const id = state.selected
  if (id === undefined) return
  const recorded = [...state.live].filter(([, { ended }]) => ended)
  const thread = await get(`/threads/${encodeURIComponent(id)}`)
  for (const [runId, live] of recorded) if (state.live.get(runId) === live) state.live.delete(runId)
  if (state.selected !== id) return
  state.thread = thread
  drawThread()
})

function showTrouble(problem) {
  if (problem.status === 401) return signOut('That token is not the right one.')
  if (problem.status === 404 && state.selected !== undefined) return select(undefined)
  if (!(problem instanceof Problem)) throw problem
}

// Drawing

function drawThreads() {
  reconcile(
    byId('threads'),
    state.threads.map((thread) => threadItem(thread, thread.id === state.selected, select)),
  )
  byId('older').hidden = state.next === undefined
}

function drawThread() {
  const { thread } = state
  const scroll = byId('scroll')
  const atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80
  setText(byId('title'), thread === undefined ? 'New conversation' : thread.agent)
  setText(byId('subtitle'), thread === undefined ? '' : [thread.id, ...notOpen(thread)].join(' · '))
  byId('hint').hidden = thread !== undefined
  const items =
    thread === undefined ? [] : conversationItems(thread, state.live, { onCancel: cancel, onDecide: decide })
  reconcile(byId('conversation'), items)
  if (atEnd) scroll.scrollTop = scroll.scrollHeight
  drawComposer()
}

const notOpen = (thread) => (thread.state === 'open' ? [] : [thread.state])

function drawComposer() {
  const chooser = byId('agent')
  const wanted = state.thread === undefined ? state.agents : [state.thread.agent]
  const [before, now] = [[...chooser.options].map(({ value }) => value).join('\n'), wanted.join('\n')]
  if (before !== now) chooser.replaceChildren(...wanted.map((name) => h('option', { value: name }, name)))
  chooser.disabled = wanted.length < 2
  const silent = state.thread !== undefined && !state.agents.includes(state.thread.agent)
  byId('composer').hidden = silent || state.agents.length === 0
  byId('greeting').textContent = state.agents.length === 0 ? 'Nobody to talk to' : 'What can we do for you?'
  byId('hint-text').textContent =
    state.agents.length === 0
      ? 'There is no agent in the configuration. What runs is shown on the left.'
      : 'What you send is stored before it is acknowledged, so nothing of it gets lost.'
}

// Acting

function select(id) {
  document.body.dataset.view = id === undefined ? 'new' : 'thread'
  if (id !== undefined && id === state.thread?.id) return
  state.selected = id
  state.thread = undefined
  history.replaceState(null, '', id === undefined ? location.pathname : `#/threads/${encodeURIComponent(id)}`)
  byId('send-problem').textContent = ''
  byId('conversation').replaceChildren()
  drawThreads()
  drawThread()
  if (id !== undefined) void refreshThread()
  else if (matchMedia('(pointer: fine)').matches) byId('text').focus()
}

/** The thread that a link names, in a notification for one. */
function threadInAddress() {
  const named = /^#\/threads\/(.+)$/.exec(location.hash)?.[1]
  try {
    return named === undefined ? undefined : decodeURIComponent(named)
  } catch {
    return named
  }
}

async function cancel(runId) {
  await post(`/runs/${runId}/cancel`, {}).catch((problem) => {
    if (problem.code !== 'runs/already-terminal') setText(byId('send-problem'), problem.message)
  })
  void refreshThread()
}

/** What is decided on is looked up as it is now; the answer is bound to exactly that. */
async function decide(actionId, decision) {
  const id = `apr_${actionId.slice(actionId.indexOf('_') + 1)}`
  const shown = state.thread?.actions.find((action) => action.id === actionId)
  try {
    const { digest, input } = await get(`/approvals/${id}`)
    if (JSON.stringify(input) !== JSON.stringify(shown?.input)) throw new Problem('it is not what is shown here', 409)
    await post(`/approvals/${id}`, { decision, digest })
    byId('send-problem').textContent = ''
  } catch (problem) {
    if (problem.status === 401) return signOut('That token is not the right one.')
    setText(byId('send-problem'), `Not decided: ${problem.message}.`)
  }
  void refreshThread()
}

/** One key a message: when the answer to a sending is lost, sending it again does not make it two. */
let draft = { key: crypto.randomUUID(), text: '' }

async function send() {
  const text = byId('text').value.trim()
  if (text === '' || byId('send').disabled) return
  if (draft.text !== text) draft = { key: crypto.randomUUID(), text }
  const to = state.thread === undefined ? { agent: byId('agent').value } : { threadId: state.thread.id }
  byId('send').disabled = true
  try {
    const { threadId } = await post('/messages', { ...to, text, key: draft.key })
    draft = { key: crypto.randomUUID(), text: '' }
    byId('text').value = ''
    byId('send-problem').textContent = ''
    fitText()
    if (state.selected !== threadId) select(threadId)
    else void refreshThread()
    byId('scroll').scrollTop = byId('scroll').scrollHeight
  } catch (problem) {
    if (problem.status === 401) return signOut('That token is not the right one.')
    const hint = problem.status === 0 ? '. Your text is still here; sending it again will not make it two' : ''
    setText(byId('send-problem'), `Not sent: ${problem.message}${hint}.`)
  } finally {
    byId('send').disabled = false
  }
}

function fitText() {
  const text = byId('text')
  text.style.height = 'auto'
  text.style.height = `${Math.min(text.scrollHeight, 220)}px`
}

// Following the daemon

function hear({ kind, data }) {
  if (kind === 'text') return hearText(data)
  state.seq = data.seq
  void refreshThreads()
  if (data.threadId === state.selected) void refreshThread()
}

function hearText({ runId, threadId, reply, at, delta, ended }) {
  const known = state.live.get(runId)
  if (ended === true) {
    if (known?.reply === reply) known.ended = true
  } else if (known?.reply === reply && known.text.length === at) known.text += delta
  else if (at === 0) state.live.set(runId, { reply, text: delta, ended: false, before: waitingNow(threadId) })
  if (threadId === state.selected && state.thread !== undefined) requestDraw()
}

/** The messages that this reply answers: those that were there when it began. */
const waitingNow = (threadId) => new Set(state.thread?.id === threadId ? state.thread.messages.map(({ id }) => id) : [])

let drawing = false
function requestDraw() {
  if (drawing) return
  drawing = true
  requestAnimationFrame(() => {
    drawing = false
    drawThread()
  })
}

const connection = (word) => {
  byId('connection').dataset.state = word
  document.body.dataset.connection = word
  byId('connection').textContent = word
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** For ever: reads the stream, and when it breaks goes on after the last event that was read. */
async function stayConnected() {
  for (let failures = 0; ;) {
    try {
      for await (const frame of follow(state.seq)) {
        if (frame.kind === 'open') {
          failures = 0
          state.live.clear()
          connection('live')
        } else hear(frame)
      }
    } catch (problem) {
      if (problem.status === 401) return signOut('That token is not the right one.')
      // Another database than before: begin again with what is there.
      if (problem.code === 'events/ahead') await loadEverything().catch(showTrouble)
    }
    connection('reconnecting')
    failures += 1
    await pause(Math.min(250 * 2 ** failures, 4000))
  }
}

async function loadEverything() {
  const [agents, page] = await Promise.all([get('/agents'), get('/threads')])
  state.agents = agents.items.map(({ name }) => name)
  state.threads = page.items
  state.next = page.next
  state.seq = page.seq
}

async function loadOlder() {
  const page = await get(`/threads?after=${encodeURIComponent(state.next)}`)
  state.threads = [...state.threads, ...page.items]
  state.next = page.next
  drawThreads()
}

// Signing in and starting

function signOut(why) {
  dropToken()
  byId('window').hidden = true
  byId('sign-in').hidden = false
  byId('sign-in-problem').textContent = why
  byId('token').focus()
}

async function start() {
  byId('sign-in').hidden = true
  byId('window').hidden = false
  for (;;) {
    try {
      await loadEverything()
      break
    } catch (problem) {
      if (problem.status === 401) return signOut('That token is not the right one.')
      connection('reconnecting')
      await pause(1000)
    }
  }
  select(threadInAddress())
  await stayConnected()
}

byId('sign-in-form').addEventListener('submit', (event) => {
  event.preventDefault()
  keepToken(byId('token').value.trim())
  byId('token').value = ''
  void start()
})
byId('composer').addEventListener('submit', (event) => {
  event.preventDefault()
  void send()
})
byId('text').addEventListener('input', fitText)
byId('text').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
  event.preventDefault()
  void send()
})
byId('new-thread').addEventListener('click', () => select(undefined))
byId('back').addEventListener('click', () => {
  document.body.dataset.view = 'list'
})
byId('older').addEventListener('click', () => void loadOlder().catch(showTrouble))
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#token=')) location.reload()
  else select(threadInAddress())
})
setInterval(drawThreads, 30_000)

document.body.dataset.view = 'new'
if (takeToken() === null) signOut('')
else void start()
