import { expect, test } from 'vitest'

import { promptLineOf } from './prompt-line.ts'

const rule = '─'.repeat(40)
const DIM = '\u{1b}[2m'
const INVERSE = '\u{1b}[7m'
const PLAIN = '\u{1b}[0m'

const empty = {
  'nothing but a prompt': 'earlier\n> ',
  'a box with a hint': `╭──╮\n│ > ${DIM}Try "fix it"${PLAIN}   │\n╰──╯\n  ? for shortcuts`,
  'a hint whose first letter is under the cursor': `${rule}\n❯ ${INVERSE}T${PLAIN}${DIM}ry "fix it"${PLAIN}\n${rule}\n  help`,
  'a cursor alone': `${rule}\n❯ ${INVERSE} ${PLAIN}\n${rule}`,
  'a hint that another colour follows': `› ${DIM}Ask anything\u{1b}[22m\n\n  100% context left`,
}
test.each(Object.entries(empty))('%s is an empty prompt', (_, screen) => {
  expect(promptLineOf(screen)).toEqual({ kind: 'empty' })
})

const typed = {
  'a word': [`${rule}\n❯ fix it${INVERSE} ${PLAIN}\n${rule}`, 'fix it'],
  'a word in a box': ['│ > fix it      │\n╰───────╯', 'fix it'],
  'the cursor on the only letter': [`❯ ${INVERSE}x${PLAIN}\n${rule}`, 'x'],
  colours: [`❯ \u{1b}[31m/clear${PLAIN}\n${rule}`, '/clear'],
}
test.each(Object.entries(typed))('%s is what a person has typed', (_, [screen = '', text]) => {
  expect(promptLineOf(screen)).toEqual({ kind: 'typed', text })
})

const unknown = {
  'a shell': 'user@host:~$ ',
  'nothing at all': '',
  'a question': ' Do you trust this folder?\n ❯ 1. Yes\n   2. No',
  'more lines of input': `${rule}\n❯ \n  second line\n${rule}`,
}
test.each(Object.entries(unknown))('%s is left alone', (_, screen) => {
  expect(promptLineOf(screen)?.kind).not.toBe('empty')
})
