export { HoldfastError } from './base/errors.ts'
export { createRuntime } from './runtime.ts'
export type { Runtime, RuntimeOptions } from './runtime.ts'
