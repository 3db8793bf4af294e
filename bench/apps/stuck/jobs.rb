# Jobs that get stuck as jobs do: a job keeps a connection of the pool while it asks a supplier, who never answers.
#
#   REDIS_URL=redis://127.0.0.1:PORT SUPPLIER=http://127.0.0.1:PORT sidekiq -r ./jobs.rb -c 5
require "connection_pool"
require "net/http"
require "sidekiq"

POOL = ConnectionPool.new(size: 3, timeout: 3600) { Redis.new(url: ENV.fetch("REDIS_URL")) }

module Supplier
  def self.price(article)
    uri = URI("#{ENV.fetch("SUPPLIER")}/price/#{article}")
    Net::HTTP.start(uri.host, uri.port, read_timeout: nil) { |http| http.get(uri.path).body }
  end
end

class PriceJob
  include Sidekiq::Worker

  def perform(article)
    POOL.with { |redis| redis.set("price #{article}", Supplier.price(article)) }
  end
end

class OrderJob
  include Sidekiq::Worker

  def perform(article)
    POOL.with { |redis| redis.incr("orders #{article}") }
  end
end
