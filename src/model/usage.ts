export { addUsage, NO_USAGE } from '../loop/usage.ts'
