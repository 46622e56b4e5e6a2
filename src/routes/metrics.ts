import type { IncomingMessage, ServerResponse } from 'node:http'
import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { NamedSlots } from '../flow/slots.ts'
import { idOf } from '../uploader/delivery/destinations.ts'
import type { Uploader } from '../uploader/index.ts'
import type { Outcome } from '../uploader/input.ts'
import { FinalizationPending } from '../uploader/jobs/finalization-pending.ts'
import type { SweepListener } from '../uploader/jobs/sweeper.ts'

/** Upper bounds of the histogram, seconds: from what memory takes to what a large file takes over a slow line. */
const DURATIONS_S = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]

/** Figures of one process for Prometheus; they go on when the configuration is loaded anew. */
export interface Metrics {
  /** Counts what the sweeper does. */
  readonly sweeping: SweepListener
  /** The same uploader; what it does is counted. */
  measure(uploader: Uploader): Uploader
  /** Counts an answer. */
  count(req: IncomingMessage, res: ServerResponse): void
  /** The type and the text that Prometheus reads. */
  readonly contentType: string
  read(): Promise<string>
  /** The same as data, for `sumFigures`. */
  figures(): Promise<object[]>
}

/**
 * The figures of several processes as if they were one.
 *
 * @param gone what processes told before they ended: of these only what was counted still holds
 */
export function sumFigures(all: object[][], gone: object[][] = []): Promise<string> {
  const isCounted = (one: { type?: unknown }) => one.type === 'counter' || one.type === 'histogram'
  return AggregatorRegistry.aggregate([...all, ...gone.map(own => own.filter(isCounted))]).metrics()
}

export function createMetrics(): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const answers = new Counter({
    name: 'upload_server_http_responses_total',
    help: 'Answers to requests, by method and status.',
    labelNames: ['method', 'status'],
    registers,
  })
  const files = new Counter({
    name: 'upload_server_files_stored_total',
    help: 'Files that were stored, by the destination they came to lie at.',
    labelNames: ['destination'],
    registers,
  })
  const bytes = new Counter({
    name: 'upload_server_stored_bytes_total',
    help: 'Bytes of these files.',
    labelNames: ['destination'],
    registers,
  })
  const failures = new Counter({
    name: 'upload_server_file_failures_total',
    help: 'Files that were not stored, by destination and code of the failure.',
    labelNames: ['destination', 'code'],
    registers,
  })
  const pending = new Counter({
    name: 'upload_server_finalization_failures_total',
    help: 'Uploads that were stored but not finished at once.',
    labelNames: ['destination'],
    registers,
  })
  const durations = new Histogram({
    name: 'upload_server_upload_duration_seconds',
    help: 'Time from the whole request to its answer, waiting included.',
    labelNames: ['destination'],
    buckets: DURATIONS_S,
    registers,
  })
  const running = new Gauge({
    name: 'upload_server_uploads_running',
    help: 'Requests that are being delivered.',
    registers,
  })
  const waiting = new Gauge({
    name: 'upload_server_uploads_waiting',
    help: 'Requests that wait for their turn.',
    registers,
  })
  const removed = new Counter({
    name: 'upload_server_files_removed_total',
    help: 'Files that were removed since their time had come, by destination.',
    labelNames: ['destination'],
    registers,
  })
  const removalFailures = new Counter({
    name: 'upload_server_removal_failures_total',
    help: 'Attempts to remove such files that failed, by destination.',
    labelNames: ['destination'],
    registers,
  })
  const due = new Gauge({
    name: 'upload_server_files_due',
    help: 'Files whose time had come and that were still there at the last look; counted up to 10,000.',
    aggregator: 'max',
    registers,
  })
  let slots: NamedSlots | undefined

  function countFile(outcome: Outcome, destination: string): void {
    if (!outcome.ok) {
      failures.inc({ destination, code: outcome.error.code })
      return
    }
    const at = { destination: outcome.destination ?? destination }
    files.inc(at)
    bytes.inc(at, outcome.size)
  }

  function look(): void {
    const load = slots?.load()
    running.set(load?.running ?? 0)
    waiting.set(load?.waiting ?? 0)
  }

  return {
    sweeping: {
      removed: destination => removed.inc({ destination }),
      failed: destination => removalFailures.inc({ destination }),
      due: count => due.set(count),
    },
    measure(uploader) {
      slots = uploader.slots
      // Rates can be told from the first upload on when there is something before it.
      for (const destination of uploader.destinations.map(idOf)) {
        for (const counter of [files, bytes, pending]) counter.inc({ destination }, 0)
      }
      return {
        ...uploader,
        async upload(request) {
          const destination = idOf(request.destination)
          const stop = durations.startTimer({ destination })
          try {
            return await uploader.upload({
              ...request,
              onOutcome(outcome) {
                countFile(outcome, destination)
                request.onOutcome?.(outcome)
              },
            })
          } catch (error) {
            if (error instanceof FinalizationPending) pending.inc({ destination })
            throw error
          } finally {
            stop()
          }
        },
      }
    },
    count(req, res) {
      res.once('finish', () => answers.inc({ method: req.method, status: res.statusCode }))
    },
    contentType: registry.contentType,
    read() {
      look()
      return registry.metrics()
    },
    figures() {
      look()
      return registry.getMetricsAsJSON()
    },
  }
}
