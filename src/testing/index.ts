export { FakeClock } from './fake-clock.ts'
export { storeContract } from './store-contract.ts'
export type { OpenStore, StoreCase } from './store-contract.ts'
