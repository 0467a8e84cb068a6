import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { PACKAGE_FOLDER } from './place.ts'

export function ownVersion(): string {
  const text = readFileSync(join(PACKAGE_FOLDER, 'package.json'), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
