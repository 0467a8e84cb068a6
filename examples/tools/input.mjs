// What the programs of this folder have in common: arguments as JSON on standard input, the result as JSON on standard
// output, and exit 1 with a sentence when there is none. None of them needs a word about cancelling: they are ended.
export async function answer(work) {
  try {
    let text = ''
    for await (const chunk of process.stdin) text += chunk
    process.stdout.write(JSON.stringify(await work(JSON.parse(text))))
  } catch (error) {
    process.stderr.write(`${error.cause?.message ?? error.message}\n`)
    process.exitCode = 1
  }
}

export async function fetchJson(url, options = {}) {
  const response = await fetch(url, options)
  const text = await response.text()
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 500)}`)
  return JSON.parse(text)
}
