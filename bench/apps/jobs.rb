# What ten threads of sidekiq work on: a job computes for some milliseconds, waits for some as for a database, and tells when it
# was done, and how long after it was due.
#
#   PROGRESS=FILE REDIS_URL=unix://SOCKET sidekiq -r ./jobs.rb -c 10
require "sidekiq"
require "digest"
require "erb"
require "json"

class ReportJob
  include Sidekiq::Worker
  sidekiq_options retry: false

  PROGRESS = File.open(ENV.fetch("PROGRESS"), "a")
  PROGRESS.sync = true
  TEMPLATE = ERB.new("<ul><% rows.each do |row| %><li><%= row[\"name\"] %>: <%= row[\"share\"].round(2) %></li><% end %></ul>")

  def perform(number, due)
    rows = JSON.parse(JSON.generate(Array.new(60) { |i| {"name" => "row #{i}", "share" => (i * number) % 101 / 7.0} }))
    sleep(0.003)
    page = TEMPLATE.result_with_hash(rows: rows.sort_by { |row| -row["share"] })
    Digest::SHA256.hexdigest(page)
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    PROGRESS.write(format("%.6f %.6f\n", now, now - due))
  end
end
