/** What is kept of a text field, in bytes; no option is longer. */
const MAX_TEXT_BYTES = 1024
/** The line end between header and body. */
const LINE_END_BYTES = 2

/** The text fields of a form that are wanted: the start of each, and of several with one name the first. */
export class TextFields {
  readonly #wanted: ReadonlySet<string>
  readonly #texts = new Map<string, Buffer>()
  #name = ''

  constructor(wanted: ReadonlySet<string>) {
    this.#wanted = wanted
  }

  begin(name: string): void {
    this.#name = this.#wanted.has(name) && !this.#texts.has(name) ? name : ''
  }

  /** Takes the next bytes of the field, from the line end before its body on. */
  write(bytes: Buffer): void {
    if (this.#name === '') return
    const kept = this.#texts.get(this.#name) ?? Buffer.alloc(0)
    const room = MAX_TEXT_BYTES + LINE_END_BYTES - kept.length
    if (room > 0) this.#texts.set(this.#name, Buffer.concat([kept, bytes.subarray(0, room)]))
  }

  /** By name. */
  get values(): ReadonlyMap<string, string> {
    return new Map([...this.#texts].map(([name, text]) => [name, text.subarray(LINE_END_BYTES).toString()]))
  }
}
