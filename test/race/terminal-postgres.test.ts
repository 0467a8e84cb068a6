import { raceForTheEnd } from './terminal.ts'

raceForTheEnd('postgres')
