# A Rails application with sqlite and templates: lists of books with their authors, a book, and the change of one.
#
#   BOOKS=FOLDER puma -t 5:5 -b tcp://127.0.0.1:PORT config.ru
#
# FOLDER is where its database is made, if it is not there yet.
require "rails"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"

ENV["DATABASE_URL"] = "sqlite3:#{File.expand_path("books.sqlite3", ENV.fetch("BOOKS"))}?pool=16&timeout=5000"

class Books < Rails::Application
  config.load_defaults 6.1
  config.root = __dir__
  config.eager_load = true
  config.cache_classes = true
  config.consider_all_requests_local = false
  config.hosts.clear
  config.secret_key_base = "0" * 64
  config.logger = ActiveSupport::Logger.new(File::NULL)
  config.active_record.migration_error = false
  config.action_dispatch.perform_deep_munge = true
  routes.append do
    get "/authors/:author_id/books" => "books#index"
    get "/books/:id" => "books#show"
    post "/books/:id" => "books#update"
  end
end

class Author < ActiveRecord::Base
  has_many :books
  validates :name, presence: true
end

class Book < ActiveRecord::Base
  belongs_to :author
  validates :title, presence: true, length: {maximum: 200}
  scope :recent, -> { order(year: :desc, title: :asc) }

  def summary
    words = text.split(/\W+/).group_by(&:downcase).transform_values(&:size)
    words.sort_by { |word, count| [-count, word] }.first(5).map { |word, count| "#{word} (#{count})" }.join(", ")
  end
end

# While sqlite waits for another connection's lock, it keeps the GVL, which the other one may need: one writes at a time,
# and readers do not wait for it (WAL).
WRITES = Mutex.new

class BooksController < ActionController::Base
  protect_from_forgery except: :update
  rescue_from(ActiveRecord::RecordNotFound) { head :not_found }

  def index
    @author = Author.find(params[:author_id])
    @books = @author.books.recent.limit(20)
  end

  def show
    @book = Book.includes(:author).find(params[:id])
  end

  def update
    book = Book.find(params[:id])
    if WRITES.synchronize { book.update(params.permit(:title)) }
      redirect_to "/books/#{book.id}"
    else
      render json: book.errors, status: :unprocessable_entity
    end
  end
end

require_relative "leaks" if ENV["LEAKS"]

Books.initialize!
ActiveRecord::Base.connection.execute("PRAGMA journal_mode = WAL")

unless ActiveRecord::Base.connection.table_exists?(:books)
  ActiveRecord::Schema.verbose = false
  ActiveRecord::Schema.define do
    create_table(:authors) { |t| t.string :name }
    create_table :books do |t|
      t.references :author, index: true
      t.string :title
      t.integer :year
      t.decimal :price, precision: 8, scale: 2
      t.text :text
    end
  end
  random = Random.new(7)
  words = Array.new(400) { Array.new(random.rand(2..9)) { ("a".."z").to_a.sample(random: random) }.join }
  ActiveRecord::Base.transaction do
    authors = Array.new(25) { |i| Author.create!(name: "#{words[i].capitalize} #{words[i + 25].capitalize}") }
    500.times do
      Book.create!(author: authors.sample(random: random), year: random.rand(1900..2025), price: random.rand(100..9900) / 100r,
                   title: Array.new(4) { words.sample(random: random) }.join(" "),
                   text: Array.new(120) { words.sample(random: random) }.join(" "))
    end
  end
end

run Books
