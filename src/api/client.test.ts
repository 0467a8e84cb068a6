import { expect, test } from 'vitest'

import { createClient } from './client.ts'
import type { EndpointName } from './endpoints.ts'
import { ROUTES } from './routes.ts'

const answering = (url: string, answer: () => Promise<Response>) => createClient({ url, token: 't', fetch: answer })

const errorOf = (url: string, answer: () => Promise<Response>, name: EndpointName = 'status') =>
  answering(url, answer)
    .call(name, {} as never)
    .then(
      () => undefined,
      (error: unknown) => error,
    )

const FAR = 'http://far.example'

test("a good status with a proxy's page behind it is no answer of the daemon, and says what to do", async () => {
  const page = () => Promise.resolve(new Response('<h1>Sign in</h1>', { headers: { 'Content-Type': 'text/html' } }))
  expect(await errorOf(FAR, page)).toMatchObject({
    code: 'daemon/strange-answer',
    message: 'what answers is not a Holdfast daemon (its answer is no JSON)',
    remedy: expect.stringContaining('HOLDFAST_URL'),
  })
  // A page that the daemon served has no such variable.
  expect(await errorOf('', page)).toMatchObject({ remedy: expect.stringContaining('load this page again') })
})

const saying = (text: string) => () => Promise.resolve(new Response(text))

test.each(['null', '7', '"yes"', '[]'])('a good status with %s behind it is no answer of the daemon', async (text) => {
  const why = expect.stringContaining('its answer is no object') as string
  expect(await errorOf(FAR, saying(text))).toMatchObject({ code: 'daemon/strange-answer', message: why })
})

test('a list without its items is no answer of the daemon, whichever list it is', async () => {
  const names = Object.keys(ROUTES) as EndpointName[]
  const lists = names.filter((name) => 'shape' in ROUTES[name].answer && 'items' in ROUTES[name].answer.shape)
  const empty = await Promise.all(names.map((name) => errorOf(FAR, saying('{}'), name)))
  expect(names.filter((_, index) => empty[index] !== undefined)).toEqual(lists)
  for (const error of empty) if (error !== undefined) expect(error).toMatchObject({ code: 'daemon/strange-answer' })
  expect(await errorOf(FAR, saying('{"items":[]}'), 'runs.list')).toBeUndefined()
})

test('a redirect is not followed, and is not taken for nobody', async () => {
  const elsewhere = new Response(null, { status: 302, headers: { Location: 'http://login.example/' } })
  expect(await errorOf(FAR, () => Promise.resolve(elsewhere))).toMatchObject({
    code: 'daemon/strange-answer',
    message: 'what answers is not a Holdfast daemon (status 302)',
  })
})

test('an answer that breaks off in the middle is none, and is asked for again', async () => {
  const broken = new ReadableStream({ start: (controller) => controller.error(new Error('reset')) })
  expect(await errorOf(FAR, () => Promise.resolve(new Response(broken)))).toMatchObject({
    code: 'daemon/no-answer',
    retry: { afterMs: 1_000 },
  })
})

test('a refusal that is JSON and not ours is no riddle', async () => {
  expect(await errorOf(FAR, () => Promise.resolve(new Response('null', { status: 500 })))).toMatchObject({
    code: 'daemon/strange-answer',
  })
})

test('what only reads is asked once more where its connection breaks; what changes something is not', async () => {
  let asked = 0
  const breaking = (times: number) => () =>
    (asked += 1) > times ? Promise.resolve(new Response('{"items":[]}')) : Promise.reject(new TypeError('fetch failed'))
  expect(await errorOf(FAR, breaking(1), 'runs.list')).toBeUndefined()
  expect(asked).toBe(2)
  asked = 0
  expect(await errorOf(FAR, breaking(2), 'runs.list')).toMatchObject({ code: 'daemon/no-answer' })
  expect(asked).toBe(2)
  asked = 0
  expect(await errorOf(FAR, breaking(1), 'runs.cancel')).toMatchObject({ code: 'daemon/no-answer' })
  expect(asked).toBe(1)
})
