# What puma is recorded serving: pages that take some work, some waiting, and some garbage.
require "digest/sha2" # "digest" alone loads it at its first use, which two threads may not do at once
require "erb"
require "json"

class Shop
  PAGE = ERB.new("<ul><% items.each do |item| %><li><%= ERB::Util.h(item[:name]) %> <%= item[:sum] %></li><% end %></ul>")

  def call(env)
    items = stock(env["QUERY_STRING"].to_i)
    body = env["PATH_INFO"] == "/json" ? JSON.generate(items) : render(items)
    [200, { "Content-Type" => "text/html" }, [body]]
  end

  def stock(seed)
    Array.new(400) { |i| { name: "item <#{seed + i}>", sum: Digest::SHA256.hexdigest("#{seed} #{i}")[0, 12] } }
  end

  def render(items)
    PAGE.result_with_hash(items: items)
  end
end

run Shop.new
