import { expect, test } from 'vitest'

import { createClient } from './client.ts'

const answering = (url: string, answer: () => Promise<Response>) => createClient({ url, token: 't', fetch: answer })

const errorOf = (url: string, answer: () => Promise<Response>) =>
  answering(url, answer)
    .call('status', {})
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
