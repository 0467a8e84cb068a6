import { writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { availableModes, begin, endOf, freshFolder, specOf } from '../processes/support.ts'

describe.each(await availableModes())('in containment %s', (containment) => {
  test('a command reads the file that it is given, from its start', async () => {
    const file = `${freshFolder()}.in`
    writeFileSync(file, 'some input')
    const read = async () =>
      endOf(await (await begin(specOf(['cat'], { containment }), { stdin: { file } })).command.ended).stdout.head
    expect(await Promise.all([read(), read()])).toEqual(['some input', 'some input'])
  })
})

test('a file that is not there starts nothing', async () => {
  const started = begin(specOf(['cat']), { stdin: { file: '/no/such/file' } })
  await expect(started).rejects.toMatchObject({ code: 'processes/cannot-start' })
})
