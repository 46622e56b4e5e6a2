import { ROOT_PATH } from './send.ts'

/** The visitor's choices, kept in this browser. */
export interface Choices {
  /** The chosen link format. */
  readonly format?: string
  /** The query parameter of the chosen destination. */
  readonly destination?: string
  readonly autoCopy?: boolean
}

/** Storage name. It includes the server's URL path, since several servers may share one origin. */
const STORAGE = `upload-server-choices ${ROOT_PATH}`

/** The saved choices; none if the storage is unavailable or damaged. */
export function savedChoices(): Choices {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(STORAGE) ?? '{}')
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

export function saveChoice(choice: Choices): void {
  try {
    localStorage.setItem(STORAGE, JSON.stringify({ ...savedChoices(), ...choice }))
  } catch {
    // The storage is full or switched off: the choice then holds until the page is closed.
  }
}
