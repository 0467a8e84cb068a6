// For `node --import`: what a program imports as `holdfast` is this clone, from its sources.
import { beTheOwnPackage } from '../../src/config/own-package.ts'

beTheOwnPackage()
