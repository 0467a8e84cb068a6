import { expect, test } from 'vitest'

import { withDiagrams } from '../../scripts/diagrams.ts'
import { readSource } from './tree.ts'

test('the state diagrams of ARCHITECTURE.md are those of the code', () => {
  const { text } = readSource('ARCHITECTURE.md')
  expect(text).toBe(withDiagrams(text))
  expect(text.match(/stateDiagram-v2/g)).toHaveLength(8)
})
