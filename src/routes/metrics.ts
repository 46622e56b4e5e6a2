import type { IncomingMessage, ServerResponse } from 'node:http'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { type ErrorCode, UploadError } from '../errors.ts'
import type { NamedSlots } from '../flow/slots.ts'
import { readVersion } from '../package.ts'
import { idOf } from '../uploader/destinations.ts'
import { FinalizationPending } from '../uploader/finalization-pending.ts'
import type { Uploader } from '../uploader/index.ts'
import type { Caller, Outcome } from '../uploader/input.ts'
import type { SweepListener } from '../uploader/sweep.ts'

/** Upper bounds of the histogram, seconds: from what memory takes to what a large file takes over a slow line. */
const DURATIONS_S = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]

/** Figures of one process for Prometheus; a reload of the configuration does not reset them. */
export interface Metrics {
  /** Counts what the sweeper does. */
  readonly sweeping: SweepListener
  /** The same uploader; what it does is counted. */
  measure(uploader: Uploader): Uploader
  /** Notes that a configuration was read. @param isInUse false when it was refused, and the one before stays */
  reloaded(isInUse: boolean): void
  /** Counts a response. */
  count(req: IncomingMessage, res: ServerResponse): void
  /** The type and the text that Prometheus reads. */
  readonly contentType: string
  read(): Promise<string>
}

export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  // Gauges whose names end like those of counters: "promtool check metrics" refuses them.
  for (const kind of ['handles', 'requests', 'resources'])
    registry.removeSingleMetric(`nodejs_active_${kind}_total`)
  const figures = createFigures(registry)
  let slots: NamedSlots | undefined
  let database: Uploader['database'] | undefined

  function countQuota(error: unknown, rules: Caller['quotas'] = []): void {
    if (!(error instanceof UploadError) || error.code !== 'quota_exceeded') return
    for (const client of new Set(rules.map(({ group }) => group))) figures.quotaRefusals.inc({ client })
  }

  function countFile(outcome: Outcome, destination: string, caller: Caller): void {
    if (!outcome.ok) {
      countQuota(outcome.error, caller.quotas)
      figures.failures.inc({ destination, code: outcome.error.code })
      return
    }
    const at = { destination: outcome.destination }
    figures.files.inc(at)
    figures.bytes.inc(at, outcome.size)
  }

  function look(): void {
    const load = slots?.load()
    figures.running.set(load?.running ?? 0)
    figures.waiting.set(load?.waiting ?? 0)
    figures.storeUp.set(database?.problem() === undefined ? 1 : 0)
  }

  return {
    sweeping: {
      removed: destination => figures.removed.inc({ destination }),
      failed: destination => figures.removalFailures.inc({ destination }),
      due: count => figures.due.set(count),
    },
    measure(uploader) {
      slots = uploader.slots
      database = uploader.database
      // Rates can be told from the first upload on when there is something before it.
      const { files, bytes, pending } = figures
      for (const destination of uploader.destinations.map(idOf)) {
        for (const counter of [files, bytes, pending]) counter.inc({ destination }, 0)
      }
      return {
        ...uploader,
        async assertRoom(rules) {
          await uploader.assertRoom(rules).catch((error: unknown) => {
            countQuota(error, rules)
            throw error
          })
        },
        async upload(request) {
          const destination = idOf(request.destination)
          const stop = figures.durations.startTimer({ destination })
          let done = 0
          try {
            return await uploader.upload({
              ...request,
              onOutcome(outcome) {
                done++
                countFile(outcome, destination, request.caller)
                request.onOutcome?.(outcome)
              },
            })
          } catch (error) {
            if (error instanceof FinalizationPending) figures.pending.inc({ destination })
            else figures.failures.inc({ destination, code: codeOf(error) }, request.inputs.length - done)
            throw error
          } finally {
            stop()
          }
        },
      }
    },
    reloaded(isInUse) {
      figures.reloadWorked.set(isInUse ? 1 : 0)
      if (isInUse) figures.reloadedAt.setToCurrentTime()
    },
    count(req, res) {
      res.once('finish', () => figures.answers.inc({ method: req.method, status: res.statusCode }))
    },
    contentType: registry.contentType,
    read() {
      look()
      return registry.metrics()
    },
  }
}

const codeOf = (error: unknown): ErrorCode => (error instanceof UploadError ? error.code : 'internal_error')

function createFigures(registry: Registry) {
  const registers = [registry]
  new Gauge({
    name: 'upload_server_build_info',
    help: 'Version of the server. Always 1.',
    labelNames: ['version'],
    registers,
  }).set({ version: readVersion() }, 1)
  return {
    answers: new Counter({
      name: 'upload_server_http_responses_total',
      help: 'HTTP responses, by method and status.',
      labelNames: ['method', 'status'],
      registers,
    }),
    files: new Counter({
      name: 'upload_server_files_stored_total',
      help: 'Files stored, by the destination that has them.',
      labelNames: ['destination'],
      registers,
    }),
    bytes: new Counter({
      name: 'upload_server_stored_bytes_total',
      help: 'Bytes of the stored files.',
      labelNames: ['destination'],
      registers,
    }),
    failures: new Counter({
      name: 'upload_server_file_failures_total',
      help: 'Files that were not stored, by destination and error code.',
      labelNames: ['destination', 'code'],
      registers,
    }),
    quotaRefusals: new Counter({
      name: 'upload_server_quota_refusals_total',
      help: 'Files that exceeded a quota, and requests that were rejected without being read, by upload key, token or "proxy".',
      labelNames: ['client'],
      registers,
    }),
    pending: new Counter({
      name: 'upload_server_finalization_failures_total',
      help: 'Uploads whose post-upload steps failed at the first attempt.',
      labelNames: ['destination'],
      registers,
    }),
    durations: new Histogram({
      name: 'upload_server_upload_duration_seconds',
      help: 'Time from the end of the request body to the response, including queueing.',
      labelNames: ['destination'],
      buckets: DURATIONS_S,
      registers,
    }),
    running: new Gauge({
      name: 'upload_server_uploads_running',
      help: 'Requests being uploaded to a destination.',
      registers,
    }),
    waiting: new Gauge({
      name: 'upload_server_uploads_waiting',
      help: 'Requests queued for a destination.',
      registers,
    }),
    removed: new Counter({
      name: 'upload_server_files_removed_total',
      help: 'Expired files that were deleted, by destination.',
      labelNames: ['destination'],
      registers,
    }),
    removalFailures: new Counter({
      name: 'upload_server_removal_failures_total',
      help: 'Failed attempts to delete expired files, by destination.',
      labelNames: ['destination'],
      registers,
    }),
    due: new Gauge({
      name: 'upload_server_files_due',
      help: 'Expired files that still existed at the last sweep, up to 10,000.',
      registers,
    }),
    storeUp: new Gauge({
      name: 'upload_server_database_up',
      help: '1, or 0 while uploads fail because the database cannot be written.',
      registers,
    }),
    reloadWorked: new Gauge({
      name: 'upload_server_config_last_reload_successful',
      help: '1, or 0 if the last reload of the configuration was rejected.',
      registers,
    }),
    reloadedAt: new Gauge({
      name: 'upload_server_config_last_reload_success_timestamp_seconds',
      help: 'Time at which the configuration in use was loaded, in seconds since the epoch.',
      registers,
    }),
  }
}
