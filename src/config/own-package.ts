import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'

import { modulePath } from '../base/place.ts'

const HERE = {
  holdfast: 'index',
  'holdfast/testing': 'testing/index',
  'holdfast/ai-sdk': 'ai-sdk/index',
} as const

let registered = false

/**
 * What a configuration imports as `holdfast` is the program that reads it: also where that is installed for the whole
 * machine, runs from its sources, or is another version than the one beside the configuration.
 */
export function beTheOwnPackage(): void {
  if (registered) return
  registered = true
  registerHooks({
    resolve(specifier, context, next) {
      const file = Object.hasOwn(HERE, specifier) ? HERE[specifier as keyof typeof HERE] : undefined
      if (file === undefined) return next(specifier, context)
      return { url: pathToFileURL(modulePath(file)).href, shortCircuit: true }
    },
  })
}
